// Images as text (.amat), as the fixed binarisation of MNIST comes (Larochelle & Murray 2011): an image a line, a number a
// pixel.
#pragma once

#include "experiments/tasks/loaders/idx.hpp"
#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {

/// Square images of numbers in [0, 1], split by spaces, row by row; kept as bytes, 255 for 1. InputError with line and column
/// where there is no such number, or another number of them than in the first line, or no square of them.
IdxImages parse_amat(const TextFile& text);

}  // namespace hardgrad::tasks
