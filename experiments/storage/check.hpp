// Checks a file.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::storage {

/// The faults of a file of cells, or of a result, gradient, checkpoint or unfinished cell, in words, one line each (starting with the path); empty if it
/// has none.
std::vector<std::string> check_file(const std::string& path);

}  // namespace hardgrad::storage
