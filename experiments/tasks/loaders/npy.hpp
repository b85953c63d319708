// Arrays in NumPy's file format (.npy, versions 1 to 3): float32 or float64, little-endian, in C order.
#pragma once

#include <string>

#include "core/support/array.hpp"

namespace hardgrad::tasks {

/// InputError if the file is damaged, truncated, of another type or order, larger than `input_limit`, or has numbers that are
/// not finite.
Array<double> read_npy(const std::string& path);

}  // namespace hardgrad::tasks
