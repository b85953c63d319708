// Whether replicates can support the intervals that are formed of them.
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

}  // namespace hardgrad::measurement
