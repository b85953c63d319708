// The fused GRU cell (Cho et al. 2014, with the reset gate after the product, as in PyTorch and cuDNN).
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// One step. a and b [R, 3 H] are the input's and the previous state's contributions to the gates, in the order r, z, n; h
/// [R, H] is the previous state:
/// r = sig(a_r + b_r), z = sig(a_z + b_z), n = tanh(a_n + r b_n), h' = (1 - z) n + z h.
/// With `index` [R], line i reads row index[i] of a [N, 3 H], such as a table of projected words.
template <class T>
Var<T> gru_cell(Var<T> a, Var<T> b, Var<T> h, std::span<const int> index = {});

}  // namespace hardgrad
