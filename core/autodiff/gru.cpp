#include "core/autodiff/gru.hpp"

#include <utility>

#include "core/autodiff/require.hpp"
#include "core/kernels/functions.hpp"

namespace hardgrad {
namespace {

/// to (+)= x for one register; does nothing if `to` is not wanted.
template <class T, class Lane>
void put(const Lane& lane, const Sink<T>& sink, std::size_t row, std::size_t column, const kernels::Batch<T>& x) {
  if (!sink.to.data) return;
  T* to = sink.to.row(row) + column;
  lane.store(to, sink.first ? x : lane.load(to) + x);
}

}  // namespace

// With g the cotangent of h' and s = (r, z, n) the activations:
// dn = g (1 - z) (1 - n^2), dz = g (h - n) z (1 - z), dr = dn b_n r (1 - r);
// da = (dr, dz, dn), db = (dr, dz, dn r), dh = g z
template <class T>
Var<T> gru_cell(Var<T> a, Var<T> b, Var<T> h, std::span<const int> index) {
  const std::size_t rows = h.rows(), hidden = h.cols();
  require_shapes(
      (index.empty() ? a.rows() : index.size()) == rows && a.cols() == 3 * hidden && b.rows() == rows && b.cols() == a.cols(),
      "gru_cell", {a, b, h});
  auto& tape = *a.tape;
  const auto of_a = tape.keep(index);
  auto next = tape.output(rows, hidden, {a, b, h});
  const auto s = tape.output(rows, 3 * hidden, {});  // r, z, n for the backward pass
  const auto in = a.value(), from = b.value(), last = h.value();
  const auto out = tape.mutable_value(next), state = tape.mutable_value(s);
  const kernels::Batch<T> one(T{1});
  for (std::size_t row = 0; row < rows; ++row) {
    const T *x = in.row(of_a.empty() ? row : of_a[row]), *y = from.row(row), *before = last.row(row);
    T *gates = state.row(row), *after = out.row(row);
    kernels::for_lanes<T>(hidden, [&](auto lane) {
      const auto r = kernels::sigmoid<T>(lane.load(x) + lane.load(y));
      const auto z = kernels::sigmoid<T>(lane.load(x + hidden) + lane.load(y + hidden));
      const auto n = kernels::tanh<T>(lane.load(x + 2 * hidden) + r * lane.load(y + 2 * hidden));
      lane.store(gates, r);
      lane.store(gates + hidden, z);
      lane.store(gates + 2 * hidden, n);
      lane.store(after, (one - z) * n + z * lane.load(before));
    });
  }
  tape.on_backward({next}, [a, b, h, next, s, of_a](Tape<T>& tape) {
    const auto g = tape.cotangent(next), state = tape.value(s), from = tape.value(b), last = tape.value(h);
    const auto wanted = [&](Var<T> x) { return tape.needs_gradient(x) ? tape.sink(x) : Sink<T>{}; };
    const kernels::Batch<T> one(T{1});
    auto to_a = wanted(a);
    const auto to_b = wanted(b), to_h = wanted(h);
    if (!of_a.empty() && to_a.to.data) to_a = {to_a.scattered(), false};
    const std::size_t H = g.cols;
    for (std::size_t row = 0; row < g.rows; ++row)
      kernels::for_lanes<T>(H, [&](auto lane) {
        const T* gates = state.row(row);
        const auto r = lane.load(gates), z = lane.load(gates + H), n = lane.load(gates + 2 * H), d = lane.load(g.row(row));
        const auto dn = d * (one - z) * (one - n * n), dz = d * (lane.load(last.row(row)) - n) * z * (one - z);
        const auto dr = dn * lane.load(from.row(row) + 2 * H) * r * (one - r);
        const std::size_t row_of_a = of_a.empty() ? row : of_a[row];
        for (const auto& [to, place] : {std::pair{to_a, row_of_a}, {to_b, row}}) {
          put<T>(lane, to, place, 0, dr);
          put<T>(lane, to, place, H, dz);
        }
        put<T>(lane, to_a, row_of_a, 2 * H, dn);
        put<T>(lane, to_b, row, 2 * H, dn * r);
        put<T>(lane, to_h, row, 0, d * z);
      });
  });
  return next;
}

template Var<float> gru_cell(Var<float>, Var<float>, Var<float>, std::span<const int>);
template Var<double> gru_cell(Var<double>, Var<double>, Var<double>, std::span<const int>);

}  // namespace hardgrad
