// Checks whether replicates support the statistics made from them: intervals, p-values, ratios.
#pragma once

#include <string>

#include "experiments/measurement/measure.hpp"
#include "experiments/measurement/statistics.hpp"

namespace hardgrad::measurement {

/// Level of each of the three intervals (of variance, squared bias, cosine) that an exact value is compared with: of correct
/// measurements at most three in a thousand are marked.
inline constexpr double mark_level = 0.999;

/// The reason why they do not, for the report; empty if there is none. A sample cannot show rare terms that were not drawn, so
/// other knowledge of the estimator is used:
///   - the exact variance (Measurement::exact_variance) lies outside its interval of level `mark_level`;
///   - fewer than five replicates carry the variance, or the tail of their squared deviations is so heavy that their variance
///   is infinite (of weighted replicates, only where fewer than 20 carry the variance);
///   - there is no noise although choices are unvisited, or there is a bias (p < 0.001) although the estimator `claims` none.
std::string why_unreliable(const Measurement& m, const Replicates& replicates, bool claims);

/// Lists the intervals of level `mark_level`, besides the variance's, that miss a known exact value (Measurement::exact_cosine
/// and the like); empty if none does. The recorded intervals of level .95 may miss it: one in twenty does.
std::string missed(const Measurement& m, const Replicates& replicates);

}  // namespace hardgrad::measurement
