// The statistics of replicates, with their intervals, as fields of a Measurement, and whether replicates support them.
#pragma once

#include <string>

#include "experiments/measurement/measure.hpp"
#include "experiments/measurement/replicate_statistics.hpp"

namespace hardgrad::measurement {

// The statistics of replicates, with their intervals, as fields of a Measurement.

/// The variance and its interval.
void take_variance(Measurement& m, const ReplicateStatistics& replicates, double level);
/// Norm and standard error of a gradient that is the mean of a long run around zero.
void take_long_run(Measurement& m, const ReplicateStatistics& long_run);
/// Bias against the reference, which is the mean of the long run if there is one; then also its p-value, in which the run's noise
/// counts (in the length of the difference, not along single directions). estimand_norm must be known.
void take_bias(Measurement& m, const ReplicateStatistics& replicates, double level, const ReplicateStatistics* long_run);
/// p-values against an exact reference, or one with a known error. rounding: relative; doubt: the error of the reference.
void test_bias(Measurement& m, const ReplicateStatistics& replicates, double rounding, double doubt = 0);
/// Relative bias, mean squared error, signal-to-noise ratio and variance x rows from the other fields.
void derive(Measurement& m);
/// The largest squared bias that rounding explains.
double bias_of_rounding(const Measurement& m, double epsilon);
/// Sets ratios to NaN where rounding dominates: ratios to a gradient below the rounding of its samples, and ratios to a
/// variance below the rounding of the gradient. An estimator without variance has an infinite signal-to-noise ratio.
void drop_ratios_of_rounding(Measurement& m, double epsilon);

// Checks whether replicates support the statistics made from them: intervals, p-values, ratios.

/// Level of each of the three intervals (of variance, squared bias, cosine) that an exact value is compared with: of correct
/// measurements at most three in a thousand are marked.
inline constexpr double mark_level = 0.999;

/// The reason why they do not, for the report; empty if there is none. A sample cannot show rare terms that were not drawn, so
/// other knowledge of the estimator is used:
///   - the exact variance (Measurement::exact_variance) lies outside its interval of level `mark_level`;
///   - fewer than five replicates carry the variance, or the tail of their squared deviations is so heavy that their variance
///   is infinite (of weighted replicates, only where fewer than 40 carry the variance, or 10 of the `last`, after which there are
///   no more);
///   - there is no noise although choices are unvisited, or there is a bias (p < 0.001) although the estimator `claims` none.
std::string reliability_warning(const Measurement& m, const ReplicateStatistics& replicates, bool claims, bool last);

/// Lists the intervals of level `mark_level`, besides the variance's, that miss a known exact value (Measurement::exact_cosine
/// and the like); empty if none does. The recorded intervals of level .95 may miss it: one in twenty does.
std::string missed(const Measurement& m, const ReplicateStatistics& replicates);

}  // namespace hardgrad::measurement
