// The squared length of a vector that is seen through noise: is it zero, and between which bounds does it lie?
#pragma once

#include <array>
#include <cstddef>

namespace hardgrad::measurement {

using Interval = std::array<double, 2>;

/// The noise e of a mean d = b + e in R^P, as far as it is known.
struct MeanNoise {
  double trace = 0;            ///< E |e|^2: trace of the covariance C of the mean
  double squares = 0;          ///< trace of C^2
  double along = 0;            ///< variance of e along d
  double freedom = 1;          ///< degrees of freedom of the estimate of `trace`: replicates - 1
  std::size_t dimensions = 1;  ///< P
};

/// |b|^2 from |d|^2. Its distribution, given |b|, is taken as that of
///
///   (|b| + sqrt(along) t)^2 + (trace - along) F,   t Student's, F Fisher's, independent
///
/// t is the noise along b; F stands for the weighted sum of chi-squares of all other directions, with as many degrees of
/// freedom as give it their variance (Satterthwaite 1946). Of one dimension that is Student's t test; of equal variances in all
/// directions the noncentral F.
class SquaredLength {
 public:
  /// Of d with |d|^2 = `observed`.
  SquaredLength(double observed, const MeanNoise& noise);
  /// |d|^2 - trace: its mean is |b|^2, and it may be negative.
  double unbiased() const { return observed_ - noise_.trace; }
  /// The probability of a d at least as long if b = 0: uniform in (0, 1) if it is. With `at_most`, the largest such probability
  /// of all b that are no longer than that.
  double p_value(double at_most = 0) const { return above(at_most); }
  /// Bounds of |b|^2, never below zero: all b at which |d|^2 lies within an acceptance region of probability `level`. The
  /// region leaves a share a(|b|) of 1 - level out below: none where b is lost in the noise, half of it where it is not (a tail
  /// function: Puza & O'Neill 2006, Generalised Clopper-Pearson confidence intervals). So the level holds at b = 0 too, and the
  /// bounds exclude zero just if p_value() < 1 - level.
  Interval interval(double level) const;

 private:
  /// Probability of |d|^2 above what was observed if |b| = length.
  double above(double length) const;
  double observed_;
  MeanNoise noise_;
  double rest_ = 0, rest_freedom_ = 1;  // mean of the other directions' part, and degrees of freedom of F
};

}  // namespace hardgrad::measurement
