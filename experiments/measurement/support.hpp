// Checks whether replicates support the statistics made from them: intervals, p-values, ratios.
#pragma once

#include <string>

#include "experiments/measurement/measure.hpp"
#include "experiments/measurement/statistics.hpp"

namespace hardgrad::measurement {

/// The reason why they do not, for the report; empty if there is none. A sample cannot show rare terms that were not drawn, so
/// other knowledge of the estimator is used:
///   - the exact variance (Measurement::exact_variance) lies outside an interval of level .999;
///   - fewer than five replicates carry the variance, or the tail of their squared deviations is so heavy that their variance
///   is infinite;
///   - there is no noise although choices are unvisited, or there is a bias (p < 0.001) although the estimator `claims` none.
std::string why_unreliable(const Measurement& m, const Replicates& replicates, bool claims);

/// Lists the intervals that miss a known exact value (Measurement::exact_variance and the like); empty if none does. Of correct
/// intervals of level .95, one in twenty misses.
std::string missed(const Measurement& m);

}  // namespace hardgrad::measurement
