// The LSTM cell in one pass over memory. The activations overwrite the gates and are kept for the backward pass.
#include "core/autodiff/lstm.hpp"

#include "core/autodiff/require.hpp"
#include "core/kernels/functions.hpp"

namespace hardgrad {
namespace {

/// to (+)= x for one register of a row.
template <class T, class Lane>
void put(const Lane& lane, const Sink<T>& sink, T* to, const kernels::Batch<T>& x) {
  lane.store(to, sink.first ? x : lane.load(to) + x);
}

/// A row's cotangents from its activations a = (i, f, g, o), its c', t = tanh(c'), the previous c, and the cotangents of its
/// results. With d = dc' + dh o (1 - t^2):
/// di = d g i (1 - i), df = d c f (1 - f), dg = d i (1 - g^2), do = dh t o (1 - o), dc = d f.
template <class T>
void cell_backward(std::size_t hidden, const T* a, const T* next, const T* c, const T* dh_row, const T* dc_row,
                   const Sink<T>& to_gates, T* gates, const Sink<T>& to_c, T* last) {
  const kernels::Batch<T> one(T{1});
  kernels::for_lanes<T>(hidden, [&](auto lane) {
    const auto i = lane.load(a), f = lane.load(a + hidden), g = lane.load(a + 2 * hidden), o = lane.load(a + 3 * hidden);
    const auto t = kernels::tanh<T>(lane.load(next)), dh = lane.load(dh_row);
    const auto d = lane.load(dc_row) + dh * o * (one - t * t);
    if (gates) {
      put<T>(lane, to_gates, gates, d * g * i * (one - i));
      put<T>(lane, to_gates, gates + hidden, d * lane.load(c) * f * (one - f));
      put<T>(lane, to_gates, gates + 2 * hidden, d * i * (one - g * g));
      put<T>(lane, to_gates, gates + 3 * hidden, dh * t * o * (one - o));
    }
    if (last) put<T>(lane, to_c, last, d * f);
  });
}

}  // namespace

// c' = sig(f) c + sig(i) tanh(g), h' = sig(o) tanh(c'); the cotangents are in cell_backward
template <class T>
LstmState<T> lstm_cell(Var<T> gates, Var<T> c) {
  const std::size_t rows = c.rows(), hidden = c.cols();
  require_shapes(gates.rows() == rows && gates.cols() == 4 * hidden, "lstm_cell", {gates, c});
  auto& tape = *gates.tape;
  auto h = tape.output(rows, hidden, {gates, c}), next = tape.output(rows, hidden, {gates, c});
  const bool keep = tape.needs_gradient(h);
  const auto activations = tape.output_over(gates, {});
  const auto in = tape.mutable_value(activations);
  const auto last = c.value();
  const auto h_out = tape.mutable_value(h), c_out = tape.mutable_value(next);
  for (std::size_t r = 0; r < rows; ++r) {
    const T* c_row = last.row(r);
    T *row = in.row(r), *h_row = h_out.row(r), *next_row = c_out.row(r);
    kernels::for_lanes<T>(hidden, [&](auto lane) {
      const auto i = kernels::sigmoid<T>(lane.load(row)), f = kernels::sigmoid<T>(lane.load(row + hidden));
      const auto g = kernels::tanh<T>(lane.load(row + 2 * hidden));
      const auto o = kernels::sigmoid<T>(lane.load(row + 3 * hidden));
      const auto cell = f * lane.load(c_row) + i * g;
      lane.store(next_row, cell);
      lane.store(h_row, o * kernels::tanh<T>(cell));
      if (!keep) return;
      lane.store(row, i);
      lane.store(row + hidden, f);
      lane.store(row + 2 * hidden, g);
      lane.store(row + 3 * hidden, o);
    });
  }
  if (!keep) return {h, next};
  tape.on_backward({h, next}, [gates, c, h, next, activations](Tape<T>& tape) {
    const auto dh = tape.cotangent(h), dc = tape.cotangent(next), last = tape.value(c), a = tape.value(activations),
               cell = tape.value(next);
    const std::size_t hidden = last.cols;
    const auto wanted = [&](Var<T> x) { return tape.needs_gradient(x) ? tape.sink(x) : Sink<T>{}; };
    const auto to_gates = wanted(gates), to_c = wanted(c);
    for (std::size_t r = 0; r < last.rows; ++r)
      cell_backward<T>(hidden, a.row(r), cell.row(r), last.row(r), dh.row(r), dc.row(r), to_gates,
                       to_gates.to.data ? to_gates.to.row(r) : nullptr, to_c, to_c.to.data ? to_c.to.row(r) : nullptr);
  });
  return {h, next};
}

template LstmState<float> lstm_cell(Var<float>, Var<float>);
template LstmState<double> lstm_cell(Var<double>, Var<double>);

}  // namespace hardgrad
