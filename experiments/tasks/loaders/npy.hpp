// Arrays of numbers as NumPy writes them (.npy, format versions 1 to 3): float32 or float64, little-endian, in C order.
#pragma once

#include <string>

#include "core/support/array.hpp"

namespace hardgrad::tasks {

/// Throws InputError for what is no such file: damaged, truncated, of another type or order, or larger than `input_limit`. NaN
/// and infinity are refused, too.
Array<double> read_npy(const std::string& path);

}  // namespace hardgrad::tasks
