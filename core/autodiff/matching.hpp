// How well the items of two sentences match, by their distance.
#pragma once

#include <span>

#include "core/autodiff/attention.hpp"

namespace hardgrad {

/// log a[r, i] with a = 1 / (1 + |x_r - y_{example r, i}|), the Euclidean distance (Yin et al. 2016, sec. 4): x [R, D], y
/// [items, D] -> [R, S], -inf beyond an example's items. Items that are equal take no gradient there (the distance has a kink).
template <class T>
Var<T> match_scores(Var<T> x, Var<T> y, std::span<const int> example, const Items& items);

}  // namespace hardgrad
