// The fused LSTM cell (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000).
#pragma once

#include "core/autodiff/tape.hpp"

namespace hardgrad {

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

}  // namespace hardgrad
