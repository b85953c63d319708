// The statistics of replicates, with their intervals, as fields of a Measurement.
#pragma once

#include "experiments/measurement/measure.hpp"
#include "experiments/measurement/statistics.hpp"

namespace hardgrad::measurement {

/// Relative rounding of a gradient that is computed in a precision; smaller biases are not tested.
template <class T>
constexpr double rounding_of() {
  return sizeof(T) == 4 ? 1e-4 : 1e-9;
}

/// The variance and its interval.
void take_variance(Measurement& m, const Replicates& replicates, double level);
/// Norm and standard error of a gradient that is the mean of a long run around zero.
void take_long_run(Measurement& m, const Replicates& long_run);
/// Bias against the reference, which is the mean of the long run if there is one; then also its p-value, in which the run's noise
/// counts (in the length of the difference, not along single directions). estimand_norm must be known.
void take_bias(Measurement& m, const Replicates& replicates, double level, const Replicates* long_run);
/// p-values against an exact reference, or one with a known error. rounding: relative; doubt: the error of the reference.
void test_bias(Measurement& m, const Replicates& replicates, double rounding, double doubt = 0);
/// Relative bias, mean squared error, signal-to-noise ratio and variance x rows from the other fields.
void derive(Measurement& m);
/// The largest squared bias that rounding explains.
double bias_of_rounding(const Measurement& m, double epsilon);
/// Sets ratios to NaN where rounding dominates: ratios to a gradient below the rounding of its samples, and ratios to a
/// variance below the rounding of the gradient. An estimator without variance has an infinite signal-to-noise ratio.
void drop_ratios_of_rounding(Measurement& m, double epsilon);

}  // namespace hardgrad::measurement
