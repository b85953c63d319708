// Statistics of gradient replicates g_m in R^P around a reference g*, in one pass and constant memory.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "experiments/measurement/probes.hpp"

namespace hardgrad {

using Interval = std::array<double, 2>;

/// Deviations d_m = g_m - g* in blocks; delete-one-block jackknife (Efron & Stein 1981) gives the intervals.
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

  const std::vector<double>& reference() const { return reference_; }
  std::vector<double> mean() const;              ///< [P]
  std::vector<double> variances() const;         ///< [P], 1/(M-1)
  double variance() const { return variance_; }  ///< trace
  /// |mean - other|^2 - variance / M: unbiased for the squared bias against `other`; may be negative.
  double squared_bias(const std::vector<double>& other) const;
  double squared_bias() const { return squared_bias_; }
  double cosine() const { return cosine_; }
  Interval variance_interval(double level) const;
  Interval squared_bias_interval(double level) const;
  Interval cosine_interval(double level) const;
  /// Smallest two-sided p-value of the t-tests of mean deviation zero along the directions, times their number.
  /// Deviations below `resolution` (rounding) count as zero.
  double bias_p_value(double resolution) const;

 private:
  struct Block {
    int count = 0;
    bool complete = false;
    std::vector<double> sum, squares;  ///< [P]; squares until the block is summed up
    double squared = 0;                ///< all squares
    double cosine = 0;
    std::vector<double> along, along_squares;  ///< per direction, the reference's own last
  };
  std::size_t directions() const { return probes_.count() + (reference_norm_ > 0); }
  struct Moments {
    double variance, squared_bias, cosine;
  };
  Moments moments_without(int block) const;
  template <class F>
  Interval jackknife(double level, double estimate, F of) const;

  std::vector<double> reference_;
  double reference_norm_;
  Probes probes_;
  int replicates_;
  std::vector<Block> blocks_;
  Block total_;
  int summed_ = 0;  // blocks that are in the total
  std::unique_ptr<std::mutex> summing_ = std::make_unique<std::mutex>();
  double variance_ = 0, squared_bias_ = 0, cosine_ = 0;
};

}  // namespace hardgrad
