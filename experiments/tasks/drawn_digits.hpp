// Digits drawn with strokes, seven-segment style, each in a hand of its own: a stand-in for MNIST without a
// file.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/loaders/idx.hpp"

namespace hardgrad::tasks {

/// `count` images of `size` x `size` pixels; number i shows the digit i mod 10 with its own height, width,
/// slant, stroke and place, keyed by i.
IdxImages draw_digits(std::size_t count, int size, Key key);

}  // namespace hardgrad::tasks
