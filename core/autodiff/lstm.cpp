// The LSTM cell in one pass over memory; the activations are kept for the way back.
#include "core/autodiff/lstm.hpp"

#include "core/kernels/functions.hpp"
#include "core/kernels/require.hpp"

namespace hardgrad {
namespace {

/// A row's gradient from its activations a = (i, f, g, o), t = tanh(c'), last c, and cotangents dh, dc:
/// d = dc + dh o (1 - t^2); di = d g i (1 - i), df = d c f (1 - f), dg = d i (1 - g^2), do = dh t o (1 - o).
template <class T>
struct CellRow {
  const T *a, *t, *c, *dh, *dc;
  std::size_t hidden;

  T into_cell(std::size_t j) const { return dc[j] + dh[j] * a[3 * hidden + j] * (T{1} - t[j] * t[j]); }
  template <bool store>
  void gates(T* __restrict to) const {
    const T* __restrict i = a, * __restrict f = a + hidden, * __restrict g = f + hidden, * __restrict o = g + hidden;
    const auto put = [](T& to, T x) { to = store ? x : to + x; };
    for (std::size_t j = 0; j < hidden; ++j) {
      const T d = into_cell(j);
      put(to[j], d * g[j] * i[j] * (T{1} - i[j]));
      put(to[hidden + j], d * c[j] * f[j] * (T{1} - f[j]));
      put(to[2 * hidden + j], d * i[j] * (T{1} - g[j] * g[j]));
      put(to[3 * hidden + j], dh[j] * t[j] * o[j] * (T{1} - o[j]));
    }
  }
  template <bool store>
  void cell(T* __restrict to) const {
    for (std::size_t j = 0; j < hidden; ++j) {
      const T x = into_cell(j) * a[hidden + j];
      to[j] = store ? x : to[j] + x;
    }
  }
};

}  // namespace

// c' = sig(f) c + sig(i) tanh(g), h' = sig(o) tanh(c'); the cotangents are CellRow's, and dc = d sig(f)
template <class T>
LstmState<T> lstm_cell(Var<T> gates, Var<T> c) {
  const std::size_t rows = c.rows(), hidden = c.cols();
  require_shapes(gates.rows() == rows && gates.cols() == 4 * hidden, "lstm_cell", {gates, c});
  auto& tape = *gates.tape;
  auto h = tape.output(rows, hidden, {gates, c}), next = tape.output(rows, hidden, {gates, c});
  const bool keep = tape.needs_gradient(h);
  const auto activations = tape.template scratch<T>(keep ? rows * 4 * hidden : 0);
  const auto tanhs = tape.template scratch<T>(keep ? rows * hidden : 0);
  const auto in = gates.value(), last = c.value();
  const auto h_out = tape.mutable_value(h), c_out = tape.mutable_value(next);
  for (std::size_t r = 0; r < rows; ++r) {
    const T *row = in.row(r), *c_row = last.row(r);
    T *h_row = h_out.row(r), *next_row = c_out.row(r);
    T* a = keep ? activations.data() + r * 4 * hidden : nullptr;
    T* tanh_row = keep ? tanhs.data() + r * hidden : nullptr;
    kernels::for_lanes<T>(hidden, [&](auto lane) {
      const auto i = kernels::sigmoid<T>(lane.load(row)), f = kernels::sigmoid<T>(lane.load(row + hidden));
      const auto g = kernels::tanh<T>(lane.load(row + 2 * hidden));
      const auto o = kernels::sigmoid<T>(lane.load(row + 3 * hidden));
      const auto cell = f * lane.load(c_row) + i * g;
      const auto t = kernels::tanh<T>(cell);
      lane.store(next_row, cell);
      lane.store(h_row, o * t);
      if (!keep) return;
      lane.store(a, i);
      lane.store(a + hidden, f);
      lane.store(a + 2 * hidden, g);
      lane.store(a + 3 * hidden, o);
      lane.store(tanh_row, t);
    });
  }
  if (!keep) return {h, next};
  tape.on_backward({h, next}, [gates, c, h, next, activations, tanhs](Tape<T>& tape) {
    const auto dh = tape.cotangent(h), dc = tape.cotangent(next), last = tape.value(c);
    const std::size_t hidden = last.cols;
    const auto row = [&](std::size_t r) {
      return CellRow<T>{activations.data() + r * 4 * hidden,
                        tanhs.data() + r * hidden,
                        last.row(r),
                        dh.row(r),
                        dc.row(r),
                        hidden};
    };
    const auto back = [&](Var<T> input, auto&& store, auto&& add) {
      if (!tape.needs_gradient(input)) return;
      const auto sink = tape.sink(input);
      for (std::size_t r = 0; r < last.rows; ++r)
        if (sink.first)
          store(row(r), sink.to.row(r));
        else
          add(row(r), sink.to.row(r));
    };
    using Row = CellRow<T>;
    back(
        gates, [](const Row& x, T* to) { x.template gates<true>(to); },
        [](const Row& x, T* to) { x.template gates<false>(to); });
    back(
        c, [](const Row& x, T* to) { x.template cell<true>(to); },
        [](const Row& x, T* to) { x.template cell<false>(to); });
  });
  return {h, next};
}

template LstmState<float> lstm_cell(Var<float>, Var<float>);
template LstmState<double> lstm_cell(Var<double>, Var<double>);

}  // namespace hardgrad
