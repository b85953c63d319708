// What blocks of replicates say of their scatter, and an interval for the variance.
#pragma once

#include <vector>

#include "experiments/measurement/squared_length.hpp"

namespace hardgrad::measurement {

/// B blocks of independent vectors, all taken around the mean of them all.
struct BlockMoments {
  std::vector<double> count;    ///< [B] vectors in a block
  std::vector<double> squares;  ///< [B] sum of their squared lengths
  std::vector<double> gram;     ///< [B, B] inner products of the blocks' sums
  double variance = 0;          ///< sum of the squares over (all vectors - 1)

  std::size_t blocks() const { return count.size(); }
  double vectors() const;
  /// Trace of the covariance by the scatter of the blocks' sums alone.
  double trace_between() const;
  /// Trace of the covariance' square over its squared trace, from 1 / dimensions to 1: one over the number of directions the
  /// scatter has, if they were alike. By moments that are unbiased under normality (Bai & Saranadasa 1996, Effect of high
  /// dimension, sec. 3).
  double concentration() const;
  /// Variance of `variance` by the delete-one-block jackknife (Efron & Stein 1981), at least what it would be were all vectors
  /// of one length.
  double error_squared() const;
};

/// Bounds of the variance: of two intervals the ends that lie further out.
///   Satterthwaite's chi-square (1946) with the jackknife's error: holds for few vectors, and where these are of few values;
///   bootstrap-t of the logarithm (Efron 1981; Hall 1988) over the blocks: follows the skewness.
/// The resamples are drawn with a key of their own: the same numbers give the same bounds.
Interval variance_interval(const BlockMoments& blocks, double level);

}  // namespace hardgrad::measurement
