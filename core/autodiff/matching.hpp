// Match scores between the items of two sentences, by distance.
#pragma once

#include <span>

#include "core/autodiff/attention.hpp"

namespace hardgrad {

/// log a[r, i] with a = 1 / (1 + |x_r - y_{example r, i}|), the Euclidean distance (Yin et al. 2016, sec. 4): x [R, D], y
/// [items, D] -> [R, S], -inf beyond an example's items. Equal items take no gradient, since the distance has a kink there.
template <class T>
Var<T> match_scores(Var<T> x, Var<T> y, std::span<const int> example, const Items& items);

}  // namespace hardgrad
