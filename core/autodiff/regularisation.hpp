// Operations that regularise training: dropout, and layer normalisation.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

// Dropout (Srivastava et al. 2014): random entries are set to 0, and the others are scaled so that the mean stays the same.

/// y[r, j] = x[r, j] / (1 - rate) with probability 1 - rate, else 0: x [R, C], rate in
/// [0, 1). Entry (r, j) is drawn from `key` at place[r] [R], column place[r].column + j.
/// So rows with the same place lose the same entries, in any order and in any batch.
template <class T>
Var<T> dropout(Var<T> x, double rate, Key key, std::span<const Draw> place);

// Layer normalisation (Ba et al. 2016): every row is normalised to mean 0 and variance 1, then scaled and shifted.

/// y[r, j] = gain[j] (x[r, j] - m_r) / sqrt(v_r + epsilon) + bias[j], with m_r and v_r the mean and the (biased) variance of
/// row r: x [R, C], gain and bias [1, C].
template <class T>
Var<T> layer_norm(Var<T> x, Var<T> gain, Var<T> bias, double epsilon = 1e-5);

}  // namespace hardgrad
