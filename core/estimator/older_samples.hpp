// Samples of a behaviour policy given to an estimator that does not correct for them.
#pragma once

#include <string>

namespace hardgrad {

/// The reason for refusing: estimators that correct are those of corrects_behaviour.
inline std::string does_not_correct(const std::string& estimator) {
  return estimator + " does not correct for samples of an older network: take policy_gradient";
}

}  // namespace hardgrad
