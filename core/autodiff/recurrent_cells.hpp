// Fused cells of recurrent networks: LSTM and GRU.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

// The fused LSTM cell (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000).

template <class T>
struct LstmState {
  Var<T> h, c;  ///< [R, H] each
};

/// One step from pre-activations [R, 4 H] in the order i, f, g, o and the previous c [R, H]: c' = sig(f) c + sig(i) tanh(g),
/// h' = sig(o) tanh(c'). The memory of the gates is overwritten (see Tape::output_over).
template <class T>
LstmState<T> lstm_cell(Var<T> gates, Var<T> c);

/// N steps from s_0 (empty: 0), whose inputs do not depend on the steps before: s_n = cell(x_n + h_{n-1} W', c_{n-1}) with
/// x_1 = `first` and x_n = `later` [R, 4 H], W [4 H, H] -> [R N, H] each, the steps of a row together.
template <class T>
LstmState<T> lstm_steps(Var<T> first, Var<T> later, Var<T> recurrent, LstmState<T> start, std::size_t steps);

// The fused GRU cell (Cho et al. 2014, with the reset gate after the product, as in PyTorch and cuDNN).

/// One step. a and b [R, 3 H] are the input's and the previous state's contributions to the gates, in the order r, z, n; h
/// [R, H] is the previous state:
/// r = sig(a_r + b_r), z = sig(a_z + b_z), n = tanh(a_n + r b_n), h' = (1 - z) n + z h.
/// With `index` [R], line i reads row index[i] of a [N, 3 H], such as a table of projected words.
template <class T>
Var<T> gru_cell(Var<T> a, Var<T> b, Var<T> h, std::span<const int> index = {});

}  // namespace hardgrad
