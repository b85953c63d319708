// Digits drawn with seven-segment strokes in varying hands: a stand-in for MNIST that needs no file.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/loaders/idx.hpp"

namespace hardgrad::tasks {

/// `count` images of `size` x `size` pixels. Image i shows the digit i mod 10 with height, width, slant, stroke and place keyed
/// by i.
IdxImages draw_digits(std::size_t count, int size, Key key);

}  // namespace hardgrad::tasks
