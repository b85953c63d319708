// Does an estimator keep the promises of its entry?
#pragma once

#include <vector>

#include "experiments/verification/verify.hpp"

namespace hardgrad::verification {

/// One check for each promise and small network it was tried on. A promise that could be tried nowhere has failed.
std::vector<Check> keeps_promises(const Spec& spec);

}  // namespace hardgrad::verification
