// Confidence bounds of the squared length of a mean and of a variance.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hardgrad::measurement {

// The squared length of a vector observed with noise: a test for zero, and confidence bounds.

using Interval = std::array<double, 2>;

/// The known properties of the noise e of a mean d = b + e in R^P.
struct MeanNoise {
  double trace = 0;            ///< E |e|^2: trace of the covariance C of the mean
  double concentration = 0;    ///< trace of C^2 over the squared trace of C
  double along = 0;            ///< variance of e along d
  double freedom = 1;          ///< degrees of freedom of the estimate of `trace`: replicates - 1
  std::size_t dimensions = 1;  ///< P
};

/// Inference on |b|^2 from |d|^2. The distribution of |d|^2 given |b| is approximated by that of
///
///   (|b| + sqrt(along) t)^2 + (trace - along) F,   t Student's, F Fisher's, independent
///
/// t is the noise along b. F is the weighted sum of chi-squares of all other directions; its degrees of freedom match its
/// variance (Satterthwaite 1946). In one dimension this is Student's t test; with equal variances in all directions it is the
/// noncentral F.
class SquaredLength {
 public:
  /// From d with |d|^2 = `observed`.
  SquaredLength(double observed, const MeanNoise& noise);
  /// |d|^2 - trace: an unbiased estimate of |b|^2, which may be negative.
  double unbiased() const { return unbiased_; }
  /// The probability of a d at least this long if b = 0; uniform in (0, 1) under that hypothesis. With `at_most`, the largest
  /// such probability over all b with |b| <= at_most.
  double p_value(double at_most = 0) const { return above(std::ldexp(at_most, -exponent_ / 2)); }
  /// Bounds of |b|^2, never below zero: all b for which |d|^2 lies within an acceptance region of probability `level`. The
  /// region omits a share a(|b|) of 1 - level at the lower end: none if b is lost in the noise, half of it otherwise (a tail
  /// function: Puza & O'Neill 2006, Generalised Clopper-Pearson confidence intervals). So the level also holds at b = 0, and
  /// the bounds exclude zero exactly if p_value() < 1 - level.
  Interval interval(double level) const;

 private:
  /// Probability that |d|^2 exceeds the observed value if |b| = length.
  double above(double length) const;
  double unbiased_;
  int exponent_;  // squares below are in units of 2^exponent_, so that their squares neither underflow nor overflow
  double observed_;
  MeanNoise noise_;
  double squares_ = 0;                  // trace of C^2
  double rest_ = 0, rest_freedom_ = 1;  // mean of the part in the other directions, and degrees of freedom of F
};

// Statistics of blocks of replicates, and an interval for the variance.

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
