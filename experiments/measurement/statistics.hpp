// Statistics of gradient replicates g_m in R^P around a reference g*, in one pass and constant memory. Replicates may have weights
// w_m, ratios of the law to another one that they were drawn from (DefensiveMixture). Means are then sum w x / sum w.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "experiments/measurement/intervals.hpp"
#include "experiments/measurement/probes.hpp"

namespace hardgrad::measurement {

/// Deviations d_m = g_m - g* in blocks, whose scatter gives the intervals.
class Replicates {
 public:
  /// The bias test uses the reference's direction (unless it is zero) and `directions` random ones. Each of the blocks, at most
  /// `most_blocks`, keeps one sum per parameter. parts: ranges [first, last) of the parameters for `part`.
  Replicates(std::vector<double> reference, int directions, int replicates, int most_blocks = 32,
             std::vector<std::array<std::size_t, 2>> parts = {});

  /// Blocks are independent: each may be filled by a separate thread, with its replicates in order.
  int blocks() const { return static_cast<int>(blocks_.size()); }
  int count() const { return replicates_; }
  /// Replicates [first, last) of a block.
  std::array<int, 2> range(int block) const;
  void add(int block, std::span<const double> gradient, double weight = 1);
  /// Marks a block as full: its sums are added to the total, in the order of the blocks, and the rest of its memory is
  /// released.
  void complete(int block);
  /// After all blocks are complete.
  void finish();
  /// Finishes with the replicates added so far, two or more. Blocks without any are removed.
  void finish_early();
  /// Doubles the number of replicates, with the same number of blocks: the present replicates fill the first half, and the second
  /// half is to be filled. Then, after `finish`, the sums equal those of twice as many replicates from the start.
  void grow();
  /// The first block that is not complete.
  int next() const { return summed_; }

  /// After `finish`: the replicates of some of the parameters, made of slices of the sums. Cosines, the tail and the corrected
  /// p-value need each replicate, and are NaN.
  Replicates part(std::size_t index) const;

  const std::vector<double>& reference() const { return reference_; }
  std::vector<double> mean() const;              ///< [P]
  std::vector<double> variances() const;         ///< [P]: sum w (g - mean)^2 / (sum w - c), c as in `effective_count`; 1/(M-1)
  double variance() const { return variance_; }  ///< trace
  double cosine() const { return cosine_; }
  Interval variance_interval(double level) const;
  /// The distance of the mean from `other`, or from the mean of `noisy` replicates. These are independent, and their noise
  /// counts, too.
  SquaredLength distance(const std::vector<double>& other, const Replicates* noisy = nullptr) const;
  /// By inversion of the score test (Wilson 1927), for a mean of numbers in [-1, 1] whose variance is a fixed share of the
  /// largest variance possible at that mean.
  Interval cosine_interval(double level) const;
  /// Plain p-value of no bias against the reference: SquaredLength::p_value. Deviations below `resolution` (rounding) count as
  /// zero; `doubt` is the error of the reference.
  double bias_p_value(double resolution, double doubt = 0) const;
  /// The number of replicates of weight 1 whose mean would be as exact: sum w / c, with c = sum w^2 |g - mean|^2 / sum w |g - mean|^2.
  double effective_count() const { return total_.weight / cost_; }
  /// True if a weight is not 1.
  bool weighted() const { return !total_.noise.empty(); }
  /// The number of equal replicates that would estimate the variance as well; 1 if a single replicate dominates it.
  double effective_sample_size() const;
  /// Tail index of the squared deviations (Hill 1975), from their largest sqrt(M), and its relative standard error. Below 2 the
  /// variance of the variance is infinite; below 1, the variance is. NaN for fewer than 100 replicates, or if too few deviate;
  /// infinite if all deviations are alike. Deviations are from the mean of the block so far.
  struct Tail {
    double index, error;
  };
  Tail tail() const;
  /// Smallest two-sided p-value of the t-tests of mean deviation zero along the directions, times their number (Bonferroni's
  /// correction). It finds a bias in one direction among many, and is not uniform if there is none. A rare term that was not
  /// drawn may carry the whole variance along a direction. So to each direction one replicate is added, with the largest
  /// deviation seen along any direction.
  double corrected_bias_p_value(double resolution) const;

 private:
  /// Sums of numbers x and their weights.
  struct Sums {
    double sum = 0;                 ///< of w x
    double noise = 0, squares = 0;  ///< of w^2 x and w^2 x^2
    void add(double x, double w) {
      sum += w * x;
      noise += w * w * x;
      squares += w * w * x * x;
    }
    void join(const Sums& other) {
      sum += other.sum;
      noise += other.noise;
      squares += other.squares;
    }
  };
  struct Block {
    int count = 0;
    double weight = 0, weight_squares = 0;
    bool complete = false;
    std::vector<double> sum, squares;                  ///< [P] of w d and w d^2; squares are kept until the block is complete
    std::vector<double> noise;                         ///< [P] of w^2 d; empty if all weights are 1
    double squared = 0;                                ///< sum of all squares
    double noise_squared = 0;                          ///< of w^2 |d|^2
    std::vector<double> squared_in, noise_squared_in;  ///< the same of each part
    Sums cosine;
    std::vector<Sums> along;      ///< per direction; the reference's direction is last
    double along_most = 0;        ///< the largest square of all directions
    std::vector<double> largest;  ///< largest squared deviations, at most `kept`, as a heap with the least on top

    const std::vector<double>& noise_sum() const { return noise.empty() ? sum : noise; }
    void add_vectors(const Block& other);
  };
  std::size_t directions() const { return probes_.count() + (reference_norm_ > 0); }
  /// [blocks, n] entries [first, first + n) of each block's sum minus its share of the total.
  std::vector<double> centred(std::size_t first, std::size_t n) const;
  void begin_weights(Block& block) const;
  std::vector<double> in_parts(const std::vector<double>& numbers) const;
  double cost() const;
  BlockMoments scatter() const;
  /// Variance of the mean along a direction of length 1, from the blocks.
  double along(const std::vector<double>& direction) const;
  /// Trace of the product of the covariances of two means, from the blocks, over trace^2.
  double overlap(const Replicates& other, double trace) const;
  static constexpr std::size_t kept = 128;
  static void keep(std::vector<double>& largest, double squared);
  bool without_noise(double resolution) const;
  double scale() const;  // scales the covariance between blocks so that the trace for the mean is its own
  double mean_noise() const { return variance_ / effective_count(); }  // trace of the covariance of the mean
  double noise_of(const Sums& of) const;                               // squared standard error of a mean, from the sums of it

  std::vector<double> reference_;
  double reference_norm_;
  Probes probes_;
  int replicates_, most_blocks_;
  std::vector<std::array<std::size_t, 2>> parts_;
  bool whole_ = true;          // false: of a part
  std::vector<double> spare_;  // memory for a block's squares
  std::vector<Block> blocks_;
  Block total_;
  int summed_ = 0;  // blocks in the total
  std::unique_ptr<std::mutex> summing_ = std::make_unique<std::mutex>();
  BlockMoments scatter_;  // in units of 2^exponent_, so that squares of a variance neither underflow nor overflow
  int exponent_ = 0;
  double variance_ = 0, cosine_ = 0;
  double cost_ = 1;  // c of effective_count
};

}  // namespace hardgrad::measurement
