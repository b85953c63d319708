// Checks whether an estimate stays the same when its samples are permuted.
#pragma once

#include "experiments/measurement/visits.hpp"

namespace hardgrad::measurement {

/// True if the estimator's gradient on `example` stays the same, up to rounding, when samples are permuted: the first two
/// swapped, and all shifted by one. Checked for a few draws.
template <class T>
bool samples_may_be_permuted(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, Copies copies);

}  // namespace hardgrad::measurement
