// Looks a file over.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::storage {

/// What is wrong with a cell, result, gradient or checkpoint file, in words, one line each (starting with the
/// path); empty if nothing is.
std::vector<std::string> check_file(const std::string& path);

}  // namespace hardgrad::storage
