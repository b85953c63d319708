// Whether an estimate stays the same when its samples change places.
#pragma once

#include "core/estimator/estimator.hpp"

namespace hardgrad::measurement {

/// True if `estimator` says that its samples may be permuted (Estimator::exchangeable) and they may: its gradient on `example`
/// is the same, but for rounding, for a few draws whose samples are exchanged, first with second, and all by one place.
template <class T>
bool samples_may_be_permuted(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, bool one_copy);

}  // namespace hardgrad::measurement
