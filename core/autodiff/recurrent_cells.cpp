#include "core/autodiff/recurrent_cells.hpp"

#include <algorithm>
#include <utility>

#include "core/autodiff/product.hpp"
#include "core/autodiff/require.hpp"
#include "core/autodiff/tape.hpp"
#include "core/kernels/functions.hpp"

namespace hardgrad {
// The LSTM cell in one pass over memory. The activations overwrite the gates and are kept for the backward pass.

namespace {

/// to (+)= x for one register of a row.
template <class T, class Lane>
void put(const Lane& lane, const Sink<T>& sink, T* to, const kernels::Batch<T>& x) {
  lane.store(to, sink.first ? x : lane.load(to) + x);
}

/// A row's c' and h' from its gates and the previous c; `keep`: the activations replace the gates.
template <class T>
void cell_forward(std::size_t hidden, T* gates, const T* c, T* h, T* next, bool keep) {
  kernels::for_lanes<T>(hidden, [&](auto lane) {
    const auto i = kernels::sigmoid<T>(lane.load(gates)), f = kernels::sigmoid<T>(lane.load(gates + hidden));
    const auto g = kernels::tanh<T>(lane.load(gates + 2 * hidden));
    const auto o = kernels::sigmoid<T>(lane.load(gates + 3 * hidden));
    const auto cell = f * lane.load(c) + i * g;
    lane.store(next, cell);
    lane.store(h, o * kernels::tanh<T>(cell));
    if (!keep) return;
    lane.store(gates, i);
    lane.store(gates + hidden, f);
    lane.store(gates + 2 * hidden, g);
    lane.store(gates + 3 * hidden, o);
  });
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
  for (std::size_t r = 0; r < rows; ++r) cell_forward(hidden, in.row(r), last.row(r), h_out.row(r), c_out.row(r), keep);
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

namespace {

/// Step n of a matrix [R N, C] that has the N steps of a row together.
template <class U>
Block<U> step_of(MatrixView<U> x, std::size_t n, std::size_t steps) {
  Block<U> block(x);
  block.data = x.row(n);
  block.rows = x.rows / steps;
  block.stride = steps * x.cols;
  return block;
}

/// The rows of a backward pass over N steps. Of a row whose last cotangents are 0, as after halting, the last steps are left
/// out.
struct LiveSteps {
  std::span<int> row;   // [R] by their last step, the latest first
  std::span<int> rows;  // [N] how many of them have step n
  std::size_t total;    // of all steps
};

template <class T>
LiveSteps live_steps(Tape<T>& tape, MatrixView<const T> dh, MatrixView<const T> dc, std::size_t steps) {
  const std::size_t R = dh.rows / steps;
  LiveSteps live{tape.template scratch<int>(R), tape.template scratch<int>(steps), 0};
  const auto count = tape.template scratch<int>(R);  // steps of each row
  const auto zero = [&](const T* x) { return std::all_of(x, x + dh.cols, [](T v) { return v == 0; }); };
  std::fill(live.rows.begin(), live.rows.end(), 0);
  for (std::size_t r = 0; r < R; ++r) {
    std::size_t n = steps;
    while (n > 0 && zero(dh.row(r * steps + n - 1)) && zero(dc.row(r * steps + n - 1))) --n;
    live.row[r] = static_cast<int>(r);
    count[r] = static_cast<int>(n);
    live.total += n;
    for (std::size_t before = 0; before < n; ++before) ++live.rows[before];
  }
  std::sort(live.row.begin(), live.row.end(), [&](int a, int b) { return count[a] != count[b] ? count[a] > count[b] : a < b; });
  return live;
}

/// to_j += x_j
template <class T>
void add_to(const T* x, std::size_t n, T* __restrict to) {
  for (std::size_t j = 0; j < n; ++j) to[j] += x[j];
}

}  // namespace

// The cotangents g_n of the gates of all steps are kept, so that W's gradient is one product: gW = sum_n g_n' h_{n-1}
template <class T>
LstmState<T> lstm_steps(Var<T> first, Var<T> later, Var<T> recurrent, LstmState<T> start, std::size_t steps) {
  const std::size_t rows = first.rows(), hidden = recurrent.cols(), width = 4 * hidden;
  require_shapes(same_shape(first, later) && first.cols() == width && recurrent.rows() == width && steps > 0 &&
                     (!start.h || (start.h.rows() == rows && start.h.cols() == hidden && same_shape(start.h, start.c))),
                 "lstm_steps", {first, later, recurrent, start.h, start.c});
  auto& tape = *first.tape;
  const auto h = tape.output(rows * steps, hidden, {first, later, recurrent, start.h, start.c});
  const auto c = tape.output(rows * steps, hidden, {first, later, recurrent, start.h, start.c});
  const bool keep = tape.needs_gradient(h);
  const auto kept = scratch_matrix(tape, keep ? rows * steps : rows, width);  // one step after the other
  const auto zeros = tape.template scratch<T>(hidden);
  std::fill(zeros.begin(), zeros.end(), T{0});
  const auto h_out = tape.mutable_value(h), c_out = tape.mutable_value(c);
  const auto turned = scratch_matrix(tape, hidden, width);  // W': BLAS would copy W anew at every step
  for (std::size_t i = 0; i < width; ++i)
    for (std::size_t j = 0; j < hidden; ++j) turned(j, i) = recurrent.value()(i, j);
  for (std::size_t n = 0; n < steps; ++n) {
    const MatrixView<T> gates{kept.row(keep ? n * rows : 0), rows, width};
    std::copy_n((n == 0 ? first : later).value().data, gates.size(), gates.data);
    if (n > 0)
      gemm<T>(step_of<const T>(h_out, n - 1, steps), false, turned, false, gates, T{1});
    else if (start.h)
      gemm<T>(start.h.value(), false, turned, false, gates, T{1});
    for (std::size_t r = 0; r < rows; ++r) {
      const T* before = n > 0 ? c_out.row(r * steps + n - 1) : start.c ? start.c.value().row(r) : zeros.data();
      cell_forward<T>(hidden, gates.row(r), before, h_out.row(r * steps + n), c_out.row(r * steps + n), keep);
    }
  }
  if (!keep) return {h, c};
  tape.on_backward({h, c}, [=](Tape<T>& tape) {
    const auto to_h = tape.cotangent(h), to_c = tape.cotangent(c), states = tape.value(h), cells = tape.value(c);
    const auto live = live_steps(tape, to_h, to_c, steps);
    // Of the live rows of the last step, then of the one before, ..: gates, and the states from which they come.
    const auto all = scratch_matrix(tape, live.total, width), before = scratch_matrix(tape, live.total, hidden);
    const auto dh = scratch_matrix(tape, rows, hidden), dc = scratch_matrix(tape, rows, hidden);
    std::fill_n(dc.data, dc.size(), T{0});
    const auto wanted = [&](Var<T> x) { return x && tape.needs_gradient(x) ? tape.sink(x).scattered() : MatrixView<T>{}; };
    const auto to_first = wanted(first), to_later = first.id == later.id ? to_first : wanted(later);
    std::size_t done = 0, at_later = 0;  // rows of `all`; of them, those of the step after
    for (std::size_t n = steps; n-- > 0;) {
      const MatrixView<T> gates{all.row(done), static_cast<std::size_t>(live.rows[n]), width};
      for (std::size_t i = 0; i < gates.rows; ++i) {
        const std::size_t row = live.row[i] * steps + n;
        std::copy_n(to_h.row(row), hidden, dh.row(i));
        add_to(to_c.row(row), hidden, dc.row(i));
      }
      if (at_later > 0)
        gemm<T>(MatrixView<const T>{all.row(done - at_later), at_later, width}, false, tape.value(recurrent), false,
                MatrixView<T>{dh.data, at_later, hidden}, T{1});
      for (std::size_t i = 0; i < gates.rows; ++i) {
        const std::size_t r = live.row[i], row = r * steps + n;
        const T* c_before = n > 0 ? cells.row(row - 1) : start.c ? tape.value(start.c).row(r) : zeros.data();
        const T* h_before = n > 0 ? states.row(row - 1) : start.h ? tape.value(start.h).row(r) : zeros.data();
        cell_backward<T>(hidden, kept.row(n * rows + r), cells.row(row), c_before, dh.row(i), dc.row(i), {all, true},
                         gates.row(i), {dc, true}, dc.row(i));
        std::copy_n(h_before, hidden, before.row(done + i));
        if (const auto to = n == 0 ? to_first : to_later; to.data) add_to(gates.row(i), width, to.row(r));
      }
      done += at_later = gates.rows;
    }
    if (const auto to = wanted(start.h); to.data) {
      gemm<T>(MatrixView<const T>{all.row(done - at_later), at_later, width}, false, tape.value(recurrent), false,
              MatrixView<T>{dh.data, at_later, hidden});
      for (std::size_t i = 0; i < at_later; ++i) add_to(dh.row(i), hidden, to.row(live.row[i]));
    }
    if (const auto to = wanted(start.c); to.data)
      for (std::size_t i = 0; i < at_later; ++i) add_to(dc.row(i), hidden, to.row(live.row[i]));
    if (!tape.needs_gradient(recurrent)) return;
    const auto sink = tape.sink(recurrent);
    const std::size_t used = start.h ? done : done - at_later;  // without a first state its product is 0
    gemm<T>(MatrixView<const T>{all.data, used, width}, true, MatrixView<const T>{before.data, used, hidden}, false, sink.to,
            sink.beta());
  });
  return {h, c};
}

#define HARDGRAD_INSTANTIATE(T)                    \
  template LstmState<T> lstm_cell(Var<T>, Var<T>); \
  template LstmState<T> lstm_steps(Var<T>, Var<T>, Var<T>, LstmState<T>, std::size_t);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

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
