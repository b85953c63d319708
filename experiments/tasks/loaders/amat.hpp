// Images as text (.amat), the format of the fixed binarisation of MNIST (Larochelle & Murray 2011): a line per image, a number
// per pixel.
#pragma once

#include "experiments/tasks/loaders/idx.hpp"
#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {

/// Square images of numbers in [0, 1], separated by spaces, row by row; stored as bytes, 255 for 1. InputError with line and
/// column for other numbers, for a line of another length than the first, or if the length is not a square.
IdxImages parse_amat(const TextFile& text);

}  // namespace hardgrad::tasks
