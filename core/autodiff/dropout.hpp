// Dropout (Srivastava et al. 2014): random entries are set to 0, and the others are scaled so that the mean stays the same.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// y[r, j] = x[r, j] / (1 - rate) with probability 1 - rate, else 0: x [R, C], rate in
/// [0, 1). Entry (r, j) is drawn from `key` at place[r] [R], column place[r].column + j.
/// So rows with the same place lose the same entries, in any order and in any batch.
template <class T>
Var<T> dropout(Var<T> x, double rate, Key key, std::span<const Draw> place);

}  // namespace hardgrad
