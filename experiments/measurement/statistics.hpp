// Statistics of gradient replicates g_m in R^P around a reference g*, in one pass and constant memory.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "experiments/measurement/probes.hpp"
#include "experiments/measurement/squared_length.hpp"
#include "experiments/measurement/variance_interval.hpp"

namespace hardgrad::measurement {

/// Deviations d_m = g_m - g* in blocks, whose scatter gives the intervals.
class Replicates {
 public:
  /// The bias test looks along the reference's own direction (if it has one) and along `directions` random ones.
  Replicates(std::vector<double> reference, int directions, int replicates);

  /// Blocks are independent: each may be filled by its own thread, its replicates in order.
  int blocks() const { return static_cast<int>(blocks_.size()); }
  int count() const { return replicates_; }
  /// Replicates [first, last) belong to a block.
  std::array<int, 2> range(int block) const;
  void add(int block, std::span<const double> gradient);
  /// A block has all its replicates: what need not be kept apart is summed up, in the blocks' order, and its memory released.
  void complete(int block);
  /// All blocks have.
  void finish();
  /// Twice as many replicates: the blocks there are become the first half of as many as before, and the second half is to be
  /// filled. Up to that, and after `finish`, the sums are those of twice as many from the start.
  void grow();
  /// The first block that is not complete.
  int next() const { return summed_; }

  const std::vector<double>& reference() const { return reference_; }
  std::vector<double> mean() const;              ///< [P]
  std::vector<double> variances() const;         ///< [P], 1/(M-1)
  double variance() const { return variance_; }  ///< trace
  double cosine() const { return cosine_; }
  Interval variance_interval(double level) const { return measurement::variance_interval(scatter_, level); }
  /// Of the mean from `other`; or from the mean of `noisy` replicates, independent of these, whose noise then counts too.
  SquaredLength distance(const std::vector<double>& other, const Replicates* noisy = nullptr) const;
  /// By inversion of the score test (Wilson 1927) of a mean of numbers in [-1, 1] whose variance is a fixed share of the most
  /// it can be at that mean.
  Interval cosine_interval(double level) const;
  /// Plain p-value of no bias against the reference: SquaredLength::p_value. Deviations below `resolution` (rounding) count as
  /// zero; the reference itself may be off by `doubt`.
  double bias_p_value(double resolution, double doubt = 0) const;
  /// How many replicates of equal weight would tell the variance as well: 1 if one of them carries it all.
  double effective_sample_size() const;
  /// Tail index of the squared deviations (Hill 1975) by their largest sqrt(M), and its relative standard error. Below 2 the
  /// variance of the variance is infinite, below 1 the variance. NaN of fewer than 100 replicates, or if fewer than these
  /// deviate; infinite if they are alike. Deviations are from the mean of the block so far.
  struct Tail {
    double index, error;
  };
  Tail tail() const;
  /// Smallest two-sided p-value of the t-tests of mean deviation zero along the directions, times their number: Bonferroni's
  /// correction. It finds a bias of one direction among many, and is not uniform where there is none. A direction may owe its
  /// whole variance to a rare term that was not drawn: to each one replicate is added that deviates as far as any did along
  /// any.
  double corrected_bias_p_value(double resolution) const;

 private:
  struct Block {
    int count = 0;
    bool complete = false;
    std::vector<double> sum, squares;  ///< [P]; squares until the block is summed up
    double squared = 0;                ///< all squares
    double cosine = 0, cosine_squares = 0;
    std::vector<double> along, along_squares;  ///< per direction, the reference's own last
    double along_most = 0;                     ///< the largest square of all directions
    std::vector<double> largest;               ///< squared deviations, at most `kept`, as a heap with the least on top
  };
  std::size_t directions() const { return probes_.count() + (reference_norm_ > 0); }
  /// [blocks, n] the sums of blocks less their share of the whole, entries [first, first + n).
  std::vector<double> centred(std::size_t first, std::size_t n) const;
  BlockMoments scatter() const;
  /// Variance of the mean along a direction of length 1, by the blocks.
  double along(const std::vector<double>& direction) const;
  /// Trace of the product of the covariances of two means, by the blocks.
  double overlap(const Replicates& other) const;
  static constexpr std::size_t kept = 128;
  static void keep(std::vector<double>& largest, double squared);
  bool without_noise(double resolution) const;
  double scale() const;  // of the covariance between blocks, for the mean's to have the trace variance / M

  std::vector<double> reference_;
  double reference_norm_;
  Probes probes_;
  int replicates_;
  std::vector<Block> blocks_;
  Block total_;
  int summed_ = 0;  // blocks that are in the total
  std::unique_ptr<std::mutex> summing_ = std::make_unique<std::mutex>();
  BlockMoments scatter_;
  double variance_ = 0, cosine_ = 0;
};

}  // namespace hardgrad::measurement
