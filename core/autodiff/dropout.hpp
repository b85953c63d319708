// Dropout (Srivastava et al. 2014): entries are left out at random, the others scaled up so that the mean stays.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// y[r, j] = x[r, j] / (1 - rate) with probability 1 - rate, else 0: x [R, C], rate in [0, 1). Entry (r, j) is drawn from `key`
/// at place[r] [R], column place[r].column + j: rows with one place lose the same entries, in whatever order or batch they
/// come.
template <class T>
Var<T> dropout(Var<T> x, double rate, Key key, std::span<const Draw> place);

}  // namespace hardgrad
