// Statistics of blocks of replicates, and an interval for the variance.
#pragma once

#include <vector>

#include "experiments/measurement/squared_length.hpp"

namespace hardgrad::measurement {

/// B blocks of independent vectors, centred at the mean of all.
struct BlockMoments {
  std::vector<double> count;    ///< [B] vectors in a block
  std::vector<double> squares;  ///< [B] sum of their squared lengths
  std::vector<double> gram;     ///< [B, B] inner products of the blocks' sums
  double variance = 0;          ///< sum of the squares over (all vectors - 1)

  std::size_t blocks() const { return count.size(); }
  double vectors() const;
  /// Trace of the covariance, estimated only from the scatter of the blocks' sums.
  double trace_between() const;
  /// Trace of the squared covariance over the squared trace, from 1 / dimensions to 1: the inverse of the number of directions
  /// if all had equal variance. The moments are unbiased under normality (Bai & Saranadasa 1996, Effect of high dimension, sec.
  /// 3).
  double concentration() const;
  /// Variance of `variance` by the delete-one-block jackknife (Efron & Stein 1981); at least its value for vectors of equal
  /// length.
  double error_squared() const;
  /// Divides all squares by 2^exponent.
  void divide_by_power_of_two(int exponent);
};

/// Bounds of the variance: the outer ends of two intervals.
///   Satterthwaite's chi-square (1946) with the jackknife's error: holds for few vectors, and for vectors with few distinct
///   values;
///   bootstrap-t of the logarithm (Efron 1981; Hall 1988) over the blocks: follows the skewness.
/// The resamples are drawn with a fixed key: equal numbers give equal bounds.
Interval variance_interval(const BlockMoments& blocks, double level);

}  // namespace hardgrad::measurement
