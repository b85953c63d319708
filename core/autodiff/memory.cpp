#include "core/autodiff/memory.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/autodiff/require.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {

// y = x s, s = (|x|^2 + floor)^(-1/2); gx = s (g - y (y . g))
template <class T>
Var<T> unit_rows(Var<T> x, T floor) {
  auto& tape = *x.tape;
  auto y = tape.output(x.rows(), x.cols(), {x});
  const auto scale = tape.template scratch<T>(x.rows());
  const auto from = x.value();
  const auto to = tape.mutable_value(y);
  for (std::size_t r = 0; r < from.rows; ++r) {
    scale[r] = T{1} / std::sqrt(kernels::dot(from.row(r), from.row(r), from.cols) + floor);
    for (std::size_t j = 0; j < from.cols; ++j) to(r, j) = from(r, j) * scale[r];
  }
  tape.on_backward({y}, [x, y, scale](Tape<T>& tape) {
    const auto g = tape.cotangent(y), unit = tape.value(y);
    const auto sink = tape.sink(x);
    for (std::size_t r = 0; r < g.rows; ++r) {
      const T along = kernels::dot(unit.row(r), g.row(r), g.cols);
      for (std::size_t j = 0; j < g.cols; ++j) {
        const T give = scale[r] * (g(r, j) - unit(r, j) * along);
        sink.to(r, j) = sink.first ? give : sink.to(r, j) + give;
      }
    }
  });
  return y;
}

namespace {

/// Shift j of 2 K + 1 moves entry i + K - j, modulo N, to entry i. f(first, from, n) for the two runs in which entries
/// from + i move to first + i.
template <class F>
void shifted_runs(std::size_t N, std::size_t K, std::size_t j, F f) {
  const std::size_t from = (K + (N - 1) * j) % N;
  f(0, from, N - from);
  f(N - from, 0, from);
}

/// to[i] += share x[i]
template <class T>
void add_part(T share, const T* x, std::size_t n, T* __restrict to) {
  for (std::size_t i = 0; i < n; ++i) to[i] += share * x[i];
}

/// to[i] *= 1 - share x[i]
template <class T>
void keep_part(T share, const T* x, std::size_t n, T* __restrict to) {
  for (std::size_t i = 0; i < n; ++i) to[i] *= T{1} - share * x[i];
}

/// Cell i of memory r times 1 - w_h,i e_h for each of its heads h = 0..H-1. cells [R N, W], w [R H, N], e [R H, W].
template <class T>
void erase_cells(MatrixView<const T> w, MatrixView<const T> e, std::size_t H, MatrixView<T> cells) {
  for (std::size_t head = 0; head < w.rows; ++head) {
    const T* weight = w.row(head);
    const std::size_t first = head / H * w.cols;
    for (std::size_t i = 0; i < w.cols; ++i)
      if (weight[i] != 0) keep_part(weight[i], e.row(head), cells.cols, cells.row(first + i));
  }
}

}  // namespace

// gw[r, i - j + K] += g[r, i] s[r, j], gs[r, j] = sum_i g[r, i] w[r, i - j + K]
template <class T>
Var<T> circular_shift(Var<T> w, Var<T> shift) {
  require_shapes(shift.rows() == w.rows() && shift.cols() % 2 == 1 && w.cols() > 0, "circular_shift", {w, shift});
  auto& tape = *w.tape;
  auto y = tape.output(w.rows(), w.cols(), {w, shift});
  const std::size_t N = w.cols(), K = shift.cols() / 2;
  const auto from = w.value(), by = shift.value();
  const auto to = tape.mutable_value(y);
  std::fill_n(to.data, to.size(), T{0});
  for (std::size_t r = 0; r < to.rows; ++r)
    for (std::size_t j = 0; j < by.cols; ++j)
      shifted_runs(N, K, j, [&](std::size_t first, std::size_t start, std::size_t n) {
        add_part(by(r, j), from.row(r) + start, n, to.row(r) + first);
      });
  tape.on_backward({y}, [w, shift, y, N, K](Tape<T>& tape) {
    const auto g = tape.cotangent(y), from = tape.value(w), by = tape.value(shift);
    const auto to_w = tape.needs_gradient(w) ? tape.sink(w).scattered() : MatrixView<T>{};
    const auto to_shift = tape.needs_gradient(shift) ? tape.sink(shift).scattered() : MatrixView<T>{};
    for (std::size_t r = 0; r < g.rows; ++r)
      for (std::size_t j = 0; j < by.cols; ++j)
        shifted_runs(N, K, j, [&](std::size_t first, std::size_t start, std::size_t n) {
          const T* give = g.row(r) + first;
          if (to_w.data) add_part(by(r, j), give, n, to_w.row(r) + start);
          if (to_shift.data) to_shift(r, j) += kernels::dot(give, from.row(r) + start, n);
        });
  });
  return y;
}

// For one entry of one cell, with k_h = 1 - w_h e_h: y = m prod_h k_h + sum_h w_h a_h;
// gm = g prod k, gw_h += g (a_h - m e_h prod_{h' != h} k), ge_h -= g m w_h prod_{h' != h} k, ga_h += g w_h
template <class T>
Var<T> write_cells(Var<T> memory, Var<T> w, Var<T> erase, Var<T> add) {
  const std::size_t N = w.cols(), R = N ? memory.rows() / N : 0, H = R ? w.rows() / R : 0;
  require_shapes(same_shape(erase, add) && erase.rows() == w.rows() && erase.cols() == memory.cols() &&
                     memory.rows() == R * N && w.rows() == R * H,
                 "write_cells", {memory, w, erase, add});
  auto& tape = *memory.tape;
  auto y = tape.output(memory.rows(), memory.cols(), {memory, w, erase, add});
  const auto m = memory.value(), weight = w.value(), e = erase.value(), a = add.value();
  const auto to = tape.mutable_value(y);
  std::copy_n(m.data, m.size(), to.data);
  erase_cells<T>(weight, e, H, to);                    // first all heads erase
  for (std::size_t head = 0; head < w.rows(); ++head)  // then all heads add
    for (std::size_t i = 0; i < N; ++i)
      if (const T by = weight(head, i); by != 0) add_part(by, a.row(head), m.cols, to.row(head / H * N + i));
  tape.on_backward({y}, [memory, w, erase, add, y, N, H](Tape<T>& tape) {
    const auto g = tape.cotangent(y), m = tape.value(memory), weight = tape.value(w), e = tape.value(erase),
               a = tape.value(add);
    const auto wanted = [&](Var<T> x) { return tape.needs_gradient(x) ? tape.sink(x).scattered() : MatrixView<T>{}; };
    const auto to_w = wanted(w), to_e = wanted(erase), to_a = wanted(add);
    // The factor that remains after erasing by all heads except `but`.
    const auto left = [&](std::size_t r, std::size_t i, std::size_t j, std::size_t but) {
      T product{1};
      for (std::size_t h = 0; h < H; ++h)
        if (h != but) product *= T{1} - weight(r * H + h, i) * e(r * H + h, j);
      return product;
    };
    std::vector<T> piece(g.cols);
    for (std::size_t head = 0; head < weight.rows; ++head)
      for (std::size_t i = 0; i < N; ++i) {
        const T by = weight(head, i);
        if (by == 0 && !to_w.data) continue;
        const std::size_t r = head / H, cell = r * N + i;
        T* __restrict out = piece.data();
        for (std::size_t j = 0; j < g.cols; ++j) out[j] = g(cell, j) * m(cell, j);
        if (H > 1)
          for (std::size_t j = 0; j < g.cols; ++j) out[j] *= left(r, i, j, head % H);
        if (to_w.data) to_w(head, i) += kernels::dot(g.row(cell), a.row(head), g.cols) - kernels::dot(out, e.row(head), g.cols);
        if (by == 0) continue;
        if (to_e.data) add_part(-by, out, g.cols, to_e.row(head));
        if (to_a.data) add_part(by, g.row(cell), g.cols, to_a.row(head));
      }
    if (!tape.needs_gradient(memory)) return;
    const auto sink = tape.sink(memory);
    const auto give = sink.first ? sink.to : MatrixView<T>{tape.template scratch<T>(g.size()).data(), g.rows, g.cols};
    std::copy_n(g.data, g.size(), give.data);
    erase_cells<T>(weight, e, H, give);
    if (!sink.first) add_part(T{1}, give.data, g.size(), sink.to.data);
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                   \
  template Var<T> unit_rows(Var<T>, T);           \
  template Var<T> circular_shift(Var<T>, Var<T>); \
  template Var<T> write_cells(Var<T>, Var<T>, Var<T>, Var<T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
