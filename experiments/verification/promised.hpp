// Checks that an estimator keeps the promises of its entry.
#pragma once

#include <vector>

#include "experiments/verification/verify.hpp"

namespace hardgrad::verification {

/// One check for each promise and each small network that tests it. A promise that no network could test has failed.
/// With `to_the_first_failure`, promises after the first broken one are not checked.
std::vector<Check> keeps_promises(const Spec& spec, bool to_the_first_failure = false);

}  // namespace hardgrad::verification
