// Settings of an estimator that change during training, such as an entropy weight or a temperature.
#pragma once

#include <string>

#include "core/registry/settings.hpp"

namespace hardgrad::training {

/// The estimator's spec after the fraction `share` (0 to 1) of training. The real settings in `text` ("temperature=0.1,
/// lambda_e=0") change linearly from their values in the spec to these. UsageError if a name is not a real setting of the
/// estimator, or its value is invalid.
Spec annealed(const Spec& estimator, const std::string& text, double share);

}  // namespace hardgrad::training
