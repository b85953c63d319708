// Settings of an estimator that change while it trains: the weight of an entropy, a temperature.
#pragma once

#include <string>

#include "core/registry/settings.hpp"

namespace hardgrad::training {

/// The estimator's spec when `share` (0 to 1) of its training is over: the real settings that `text` names ("temperature=0.1,
/// lambda_e=0") on a straight line from their own values to those. UsageError if one is no real setting of the estimator, or
/// the value none that it may have.
Spec annealed(const Spec& estimator, const std::string& text, double share);

}  // namespace hardgrad::training
