#include "core/autodiff/memory.hpp"

#include <cmath>

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

// gw[r, i - j + K] += g[r, i] s[r, j], gs[r, j] = sum_i g[r, i] w[r, i - j + K]
template <class T>
Var<T> circular_shift(Var<T> w, Var<T> shift) {
  require_shapes(shift.rows() == w.rows() && shift.cols() % 2 == 1 && w.cols() > 0, "circular_shift", {w, shift});
  auto& tape = *w.tape;
  auto y = tape.output(w.rows(), w.cols(), {w, shift});
  const auto cell = [N = w.cols(), K = shift.cols() / 2](std::size_t i, std::size_t j) { return (i + K + (N - 1) * j) % N; };
  const auto from = w.value(), by = shift.value();
  const auto to = tape.mutable_value(y);
  for (std::size_t r = 0; r < to.rows; ++r)
    for (std::size_t i = 0; i < to.cols; ++i) {
      T sum{0};
      for (std::size_t j = 0; j < by.cols; ++j) sum += by(r, j) * from(r, cell(i, j));
      to(r, i) = sum;
    }
  tape.on_backward({y}, [w, shift, y, cell](Tape<T>& tape) {
    const auto g = tape.cotangent(y), from = tape.value(w), by = tape.value(shift);
    const auto to_w = tape.needs_gradient(w) ? tape.sink(w).scattered() : MatrixView<T>{};
    const auto to_shift = tape.needs_gradient(shift) ? tape.sink(shift).scattered() : MatrixView<T>{};
    for (std::size_t r = 0; r < g.rows; ++r)
      for (std::size_t i = 0; i < g.cols; ++i)
        for (std::size_t j = 0; j < by.cols; ++j) {
          if (to_w.data) to_w(r, cell(i, j)) += g(r, i) * by(r, j);
          if (to_shift.data) to_shift(r, j) += g(r, i) * from(r, cell(i, j));
        }
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
  for (std::size_t head = 0; head < w.rows(); ++head)  // first all heads erase
    for (std::size_t i = 0; i < N; ++i)
      if (const T by = weight(head, i); by != 0)
        for (std::size_t j = 0; j < m.cols; ++j) to(head / H * N + i, j) *= T{1} - by * e(head, j);
  for (std::size_t head = 0; head < w.rows(); ++head)  // then all heads add
    for (std::size_t i = 0; i < N; ++i)
      if (const T by = weight(head, i); by != 0)
        for (std::size_t j = 0; j < m.cols; ++j) to(head / H * N + i, j) += by * a(head, j);
  tape.on_backward({y}, [memory, w, erase, add, y, N, H](Tape<T>& tape) {
    const auto g = tape.cotangent(y), m = tape.value(memory), weight = tape.value(w), e = tape.value(erase),
               a = tape.value(add);
    const auto wanted = [&](Var<T> x) { return tape.needs_gradient(x) ? tape.sink(x).scattered() : MatrixView<T>{}; };
    const auto to_w = wanted(w), to_e = wanted(erase), to_a = wanted(add);
    // The factor that remains after erasing by all heads except `but`; `but` = H: by all heads.
    const auto left = [&](std::size_t r, std::size_t i, std::size_t j, std::size_t but) {
      T product{1};
      for (std::size_t h = 0; h < H; ++h)
        if (h != but) product *= T{1} - weight(r * H + h, i) * e(r * H + h, j);
      return product;
    };
    for (std::size_t head = 0; head < weight.rows; ++head)
      for (std::size_t i = 0; i < N; ++i) {
        const T by = weight(head, i);
        if (by == 0 && !to_w.data) continue;
        const std::size_t r = head / H, cell = r * N + i;
        T to_weight{0};
        for (std::size_t j = 0; j < g.cols; ++j) {
          const T erased = g(cell, j) * m(cell, j) * (H == 1 ? T{1} : left(r, i, j, head % H));
          to_weight += g(cell, j) * a(head, j) - erased * e(head, j);
          if (to_e.data) to_e(head, j) -= erased * by;
          if (to_a.data) to_a(head, j) += g(cell, j) * by;
        }
        if (to_w.data) to_w(head, i) += to_weight;
      }
    if (!tape.needs_gradient(memory)) return;
    const auto sink = tape.sink(memory);
    for (std::size_t cell = 0; cell < g.rows; ++cell) {
      const std::size_t r = cell / N, i = cell % N;
      bool written = false;
      for (std::size_t h = 0; h < H; ++h) written |= weight(r * H + h, i) != 0;
      for (std::size_t j = 0; j < g.cols; ++j) {
        const T give = written ? g(cell, j) * left(r, i, j, H) : g(cell, j);
        sink.to(cell, j) = sink.first ? give : sink.to(cell, j) + give;
      }
    }
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
