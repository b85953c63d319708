// Whether an estimate stays the same when its samples change places.
#pragma once

#include "core/estimator/estimator.hpp"

namespace hardgrad::measurement {

/// True if the estimator's gradient on `example` is the same, but for rounding, for a few draws whose samples are exchanged:
/// the first with the second, and all by one place.
template <class T>
bool samples_may_be_permuted(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, bool one_copy);

}  // namespace hardgrad::measurement
