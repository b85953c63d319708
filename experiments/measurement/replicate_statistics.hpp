// Statistics of gradient replicates around a reference, from their sums. Means of weighted replicates are sum w x / sum w.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "experiments/measurement/intervals.hpp"
#include "experiments/measurement/replicate_sums.hpp"

namespace hardgrad::measurement {

/// Moments, intervals and tests. The scatter of the blocks' sums gives the intervals.
class ReplicateStatistics {
 public:
  /// Completes the blocks that are not complete.
  explicit ReplicateStatistics(ReplicateSums sums);
  /// The sums again, for more replicates.
  ReplicateSums sums() && { return std::move(sums_); }

  /// Those of some of the parameters. Cosines, the tail and the corrected p-value need each replicate, and are NaN.
  ReplicateStatistics part(std::size_t index) const { return ReplicateStatistics(sums_.part(index)); }

  int count() const { return sums_.count(); }
  const std::vector<double>& reference() const { return sums_.reference(); }
  std::vector<double> mean() const;              ///< [P]
  std::vector<double> variances() const;         ///< [P]: sum w (g - mean)^2 / (sum w - c), c as in `effective_count`; 1/(M-1)
  double variance() const { return variance_; }  ///< trace
  double cosine() const { return cosine_; }
  Interval variance_interval(double level) const;
  /// The distance of the mean from `other`, or from the mean of `noisy` replicates. These are independent, and their noise
  /// counts, too.
  SquaredLength distance(const std::vector<double>& other, const ReplicateStatistics* noisy = nullptr) const;
  /// By inversion of the score test (Wilson 1927), for a mean of numbers in [-1, 1] whose variance is a fixed share of the
  /// largest variance possible at that mean.
  Interval cosine_interval(double level) const;
  /// Plain p-value of no bias against the reference: SquaredLength::p_value. Deviations below `resolution` (rounding) count as
  /// zero; `doubt` is the error of the reference.
  double bias_p_value(double resolution, double doubt = 0) const;
  /// The number of replicates of weight 1 whose mean would be as exact: sum w / c, with c = sum w^2 |g - mean|^2 / sum w |g - mean|^2.
  double effective_count() const { return sums_.total_.weight / cost_; }
  /// True if a weight is not 1.
  bool weighted() const { return !sums_.total_.noise.empty(); }
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
  /// [blocks, n] entries [first, first + n) of each block's sum minus its share of the total.
  std::vector<double> centred(std::size_t first, std::size_t n) const;
  double cost() const;
  BlockMoments scatter() const;
  /// Variance of the mean along a direction of length 1, from the blocks.
  double along(const std::vector<double>& direction) const;
  /// Trace of the product of the covariances of two means, from the blocks, over trace^2.
  double overlap(const ReplicateStatistics& other, double trace) const;
  bool without_noise(double resolution) const;
  double scale() const;  // scales the covariance between blocks so that the trace for the mean is its own
  double mean_noise() const { return variance_ / effective_count(); }  // trace of the covariance of the mean
  double noise_of(const ReplicateSums::Sums& of) const;                // squared standard error of a mean, from the sums of it

  ReplicateSums sums_;
  BlockMoments scatter_;  // in units of 2^exponent_, so that squares of a variance neither underflow nor overflow
  int exponent_ = 0;
  double variance_ = 0, cosine_ = 0;
  double cost_ = 1;  // c of effective_count
};

}  // namespace hardgrad::measurement
