// Whether replicates can support what is formed of them: intervals, p-values, ratios.
#pragma once

#include <string>

#include "experiments/measurement/measure.hpp"
#include "experiments/measurement/statistics.hpp"

namespace hardgrad::measurement {

/// Why they cannot, in words; empty if nothing speaks against it. Rare terms that were not drawn cannot be seen in a sample:
/// what else is known of the estimator is held against it.
///   - the exact variance (Measurement::exact_variance) lies outside an interval that all but one in a thousand hold;
///   - fewer than five replicates carry the variance, or their squared deviations have so heavy a tail that it has none itself;
///   - no noise was seen at all while choices were left unvisited, or a bias (p < 0.001) of an estimator that `claims` to have
///   none.
std::string unsupported(const Measurement& m, const Replicates& replicates, bool claims);

/// Which intervals miss the exact value where that is known (Measurement::exact_variance and the like), in words; empty if none
/// does. Of sound intervals of level .95 one in twenty does.
std::string missed(const Measurement& m);

}  // namespace hardgrad::measurement
