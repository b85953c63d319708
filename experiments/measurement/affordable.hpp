// The number of samples an exact measurement can afford.
#pragma once

#include <string>

#include "core/estimator/estimator.hpp"

namespace hardgrad::measurement {

/// The largest number of samples, below the spec's, for which exact moments need no more visits than the cap, written as in a
/// spec: "samples=7". Empty if the estimator takes no number of samples, or if fewer samples would not help. An estimate, from
/// one first visit (visits_needed).
template <class T>
std::string affordable(const Spec& spec, const Model<T>& model, const Batch& batch, double outcome_cap);

}  // namespace hardgrad::measurement
