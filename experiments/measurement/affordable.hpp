// How many samples an exact measurement can afford.
#pragma once

#include <string>

#include "core/estimator/estimator.hpp"

namespace hardgrad::measurement {

/// The most samples, below those of the spec, with which exact moments take no more visits than the cap, as it is written in a
/// spec: "samples=7". Empty if the estimator takes no number of samples, or their number is not what is too much. By first
/// visits (visits_needed): an estimate.
template <class T>
std::string affordable(const Spec& spec, const Model<T>& model, const Batch& batch, double outcome_cap);

}  // namespace hardgrad::measurement
