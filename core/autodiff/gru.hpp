// The GRU cell, fused (Cho et al. 2014, with the reset gate after the product, as PyTorch and cuDNN have it).
#pragma once

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// One step from what the input and the last h [R, H] contribute to the gates, a and b [R, 3 H] each, in the order r, z, n:
/// r = sig(a_r + b_r), z = sig(a_z + b_z), n = tanh(a_n + r b_n), h' = (1 - z) n + z h.
template <class T>
Var<T> gru_cell(Var<T> a, Var<T> b, Var<T> h);

}  // namespace hardgrad
