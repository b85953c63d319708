// The differences between the identities of two cells, in words.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::sweeps {

/// "train.steps 400 -> 401", "the estimator's plugin is another build"; empty if they are equal.
std::vector<std::string> identity_differences(const std::string& before, const std::string& now);
/// All of them in one line.
std::string identity_difference(const std::string& before, const std::string& now);

}  // namespace hardgrad::sweeps
