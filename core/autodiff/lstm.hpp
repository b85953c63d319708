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

}  // namespace hardgrad
