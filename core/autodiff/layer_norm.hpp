// Layer normalisation (Ba et al. 2016): every row is normalised to mean 0 and variance 1, then scaled and shifted.
#pragma once

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// y[r, j] = gain[j] (x[r, j] - m_r) / sqrt(v_r + epsilon) + bias[j], with m_r and v_r the mean and the (biased) variance of
/// row r: x [R, C], gain and bias [1, C].
template <class T>
Var<T> layer_norm(Var<T> x, Var<T> gain, Var<T> bias, double epsilon = 1e-5);

}  // namespace hardgrad
