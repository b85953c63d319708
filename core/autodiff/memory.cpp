#include "core/autodiff/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/autodiff/require.hpp"
#include "core/autodiff/tape.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {

namespace {

/// s[r] = (|x_r|^2 + floor)^(-1/2)
template <class T>
std::span<const T> inverse_lengths(Tape<T>& tape, MatrixView<const T> x, T floor) {
  const auto s = tape.template scratch<T>(x.rows);
  kernels::row_squares(x.data, x.rows, x.cols, s.data());
  for (T& length : s) length = T{1} / std::sqrt(length + floor);
  return s;
}

/// The heads and cells of one row, and the cotangents g [H, N] of their cosines c. With d_hi = g_hi s_h t_i:
/// gq_h = sum_i d_hi m_i - q_h s_h^2 sum_i g_hi c_hi, gm_i = sum_h d_hi q_h - m_i t_i^2 sum_h g_hi c_hi.
template <class T>
struct CosineRow {
  MatrixView<const T> g, c, q, m;
  const T *s, *t;

  /// Writes gq [H, W], and adds gm to `to_m` [N, W] if it is wanted. `sums` [H] and `along` [N] are workspace.
  void backward(MatrixView<T> gq, MatrixView<T> to_m, kernels::Batch<T>* sums, T* along) const {
    using kernels::Batch;
    const std::size_t H = g.rows, N = g.cols;
    for (std::size_t i = 0; i < N; ++i) {
      along[i] = T{0};
      for (std::size_t h = 0; h < H; ++h) along[i] += g(h, i) * c(h, i);
      along[i] *= t[i] * t[i];
    }
    kernels::for_lanes<T>(q.cols, [&](auto lane) {
      std::fill_n(sums, H, Batch<T>(T{0}));
      for (std::size_t i = 0; i < N; ++i) {
        const auto cell = lane.load(m.row(i));
        auto give = Batch<T>(-along[i]) * cell;
        for (std::size_t h = 0; h < H; ++h) {
          const Batch<T> d(g(h, i) * s[h] * t[i]);
          sums[h] = xsimd::fma(d, cell, sums[h]);
          give = xsimd::fma(d, lane.load(q.row(h)), give);
        }
        if (to_m.data) lane.store(to_m.row(i), lane.load(to_m.row(i)) + give);
      }
      for (std::size_t h = 0; h < H; ++h) lane.store(gq.row(h), sums[h]);
    });
    for (std::size_t h = 0; h < H; ++h) {
      const T by = s[h] * s[h] * kernels::dot(g.row(h), c.row(h), N);
      for (std::size_t j = 0; j < q.cols; ++j) gq(h, j) -= by * q(h, j);
    }
  }
};

/// to[i] += share x[i]
template <class T>
void add_part(T share, const T* x, std::size_t n, T* __restrict to) {
  for (std::size_t i = 0; i < n; ++i) to[i] += share * x[i];
}

/// Where to add the cotangent of x; empty if none is wanted.
template <class T>
MatrixView<T> wanted(Tape<T>& tape, Var<T> x) {
  return tape.needs_gradient(x) ? tape.sink(x).scattered() : MatrixView<T>{};
}

template <class U>
MatrixView<U> lines(MatrixView<U> x, std::size_t from, std::size_t count) {
  return x.data ? MatrixView<U>{x.row(from), count, x.cols} : x;
}

}  // namespace

template <class T>
Var<T> cosines(Var<T> query, Var<T> memory, std::span<const int> of, std::size_t N, T floor) {
  const std::size_t R = of.size(), H = R ? query.rows() / R : 0;
  require_shapes(memory.cols() == query.cols() && N > 0 && memory.rows() % N == 0 && query.rows() == R * H, "cosines",
                 {query, memory});
  require_indices("cosines", of, 0, memory.rows() / N);
  auto& tape = *memory.tape;
  auto y = tape.output(R * H, N, {query, memory});
  const auto s = inverse_lengths(tape, query.value(), floor), t = inverse_lengths(tape, memory.value(), floor);
  const auto q = query.value(), m = memory.value();
  const auto c = tape.mutable_value(y);
  for (std::size_t head = 0; head < c.rows; ++head) {
    const std::size_t first = of[head / H] * N;
    T* __restrict row = c.row(head);
    kernels::row_dots(q.row(head), m.row(first), N, m.cols, row);
    for (std::size_t i = 0; i < N; ++i) row[i] *= s[head] * t[first + i];
  }
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [query, memory, y, s, t, N, H, of = tape.keep(of)](Tape<T>& tape) {
    const auto g = tape.cotangent(y), c = tape.value(y), q = tape.value(query), m = tape.value(memory);
    const auto gq = scratch_matrix(tape, H, q.cols);
    const auto sums = tape.template scratch<kernels::Batch<T>>(H);
    const auto along = tape.template scratch<T>(N);
    const auto to_m = wanted(tape, memory), to_q = wanted(tape, query);
    for (std::size_t r = 0; r < of.size(); ++r) {
      const std::size_t first = of[r] * N;
      const CosineRow<T> row{lines(g, r * H, H), lines(c, r * H, H), lines(q, r * H, H),
                             lines(m, first, N), s.data() + r * H,   t.data() + first};
      row.backward(gq, lines(to_m, first, N), sums.data(), along.data());
      if (to_q.data) add_part(T{1}, gq.data, gq.size(), to_q.row(r * H));
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

/// to[i] *= 1 - share x[i]
template <class T>
void keep_part(T share, const T* x, std::size_t n, T* __restrict to) {
  for (std::size_t i = 0; i < n; ++i) to[i] *= T{1} - share * x[i];
}

/// Cell i times 1 - w_h,i e_h for each of the heads h of row r. cells [N, W], w [R H, N], e [R H, W].
template <class T>
void erase_cells(MatrixView<const T> w, MatrixView<const T> e, std::size_t H, std::size_t r, MatrixView<T> cells) {
  for (std::size_t head = r * H; head < (r + 1) * H; ++head)
    kernels::for_nonzero(w.row(head), w.cols,
                         [&](std::size_t i, T by) { keep_part(by, e.row(head), cells.cols, cells.row(i)); });
}

/// Adds the erased cotangents of the rows' memories [R N, W] to those of the memories that they continue.
template <class T>
void erased_cotangent(Tape<T>& tape, Var<T> y, Var<T> memory, std::span<const int> of, MatrixView<const T> w,
                      MatrixView<const T> e, std::size_t H) {
  const std::size_t N = w.cols;
  bool same = of.size() * N == memory.rows(), once = true;  // each row continues its own memory; none has two
  for (std::size_t r = 0; r < of.size(); ++r) {
    same = same && of[r] == static_cast<int>(r);
    once = once && (r == 0 || of[r] > of[r - 1]);
  }
  if (same)
    return tape.pass_on(y, memory, [&](MatrixView<T> give) {
      for (std::size_t r = 0; r < of.size(); ++r) erase_cells<T>(w, e, H, r, lines(give, r * N, N));
    });
  if (!tape.needs_gradient(memory)) return;
  const auto g = tape.cotangent(y);
  const auto sink = tape.sink(memory);
  const std::size_t size = N * g.cols;
  const bool stores = sink.first && once;
  const MatrixView<T> to = stores ? sink.to : sink.scattered(), piece{tape.template scratch<T>(size).data(), N, g.cols};
  std::size_t next = 0;  // first memory that is not written yet
  const auto clear_until = [&](std::size_t end) {
    if (stores) std::fill(to.row(next * N), to.row(end * N), T{0});
  };
  for (std::size_t r = 0; r < of.size(); ++r) {
    const auto into = lines(to, of[r] * N, N), give = stores ? into : piece;
    clear_until(of[r]);
    next = of[r] + 1;
    std::copy_n(g.row(r * N), size, give.data);
    erase_cells<T>(w, e, H, r, give);
    if (!stores) add_part(T{1}, give.data, size, into.data);
  }
  clear_until(to.rows / N);
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
    kernels::for_nonzero(by.row(r), by.cols, [&](std::size_t j, T share) {
      shifted_runs(N, K, j, [&](std::size_t first, std::size_t start, std::size_t n) {
        add_part(share, from.row(r) + start, n, to.row(r) + first);
      });
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
Var<T> write_cells(Var<T> memory, std::span<const int> of, Var<T> w, Var<T> erase, Var<T> add) {
  const std::size_t N = w.cols(), R = of.size(), H = R ? w.rows() / R : 0;
  require_shapes(same_shape(erase, add) && erase.rows() == w.rows() && erase.cols() == memory.cols() && N > 0 &&
                     memory.rows() % N == 0 && w.rows() == R * H,
                 "write_cells", {memory, w, erase, add});
  require_indices("write_cells", of, 0, memory.rows() / N);
  auto& tape = *memory.tape;
  auto y = tape.output(R * N, memory.cols(), {memory, w, erase, add});
  const auto m = memory.value(), weight = w.value(), e = erase.value(), a = add.value();
  for (std::size_t r = 0; r < R; ++r) {
    const auto cells = lines(tape.mutable_value(y), r * N, N);
    std::copy_n(m.row(of[r] * N), cells.size(), cells.data);
    erase_cells<T>(weight, e, H, r, cells);                     // first all heads erase
    for (std::size_t head = r * H; head < (r + 1) * H; ++head)  // then all heads add
      kernels::for_nonzero(weight.row(head), N, [&](std::size_t i, T by) { add_part(by, a.row(head), a.cols, cells.row(i)); });
  }
  tape.on_backward({y}, [memory, w, erase, add, y, N, H, of = tape.keep(of)](Tape<T>& tape) {
    const auto g = tape.cotangent(y), m = tape.value(memory), weight = tape.value(w), e = tape.value(erase),
               a = tape.value(add);
    const auto to_w = wanted(tape, w), to_e = wanted(tape, erase), to_a = wanted(tape, add);
    // The factor that remains after erasing by all heads except `but`.
    const auto left = [&](std::size_t r, std::size_t i, std::size_t j, std::size_t but) {
      T product{1};
      for (std::size_t h = 0; h < H; ++h)
        if (h != but) product *= T{1} - weight(r * H + h, i) * e(r * H + h, j);
      return product;
    };
    std::vector<T> piece(g.cols);
    for (std::size_t head = 0; head < weight.rows; ++head) {
      const std::size_t r = head / H;
      const auto back = [&](std::size_t i, T by) {
        const T *given = g.row(r * N + i), *before = m.row(of[r] * N + i);
        T* __restrict out = piece.data();
        for (std::size_t j = 0; j < g.cols; ++j) out[j] = given[j] * before[j];
        if (H > 1)
          for (std::size_t j = 0; j < g.cols; ++j) out[j] *= left(r, i, j, head % H);
        if (to_w.data) to_w(head, i) += kernels::dot(given, a.row(head), g.cols) - kernels::dot(out, e.row(head), g.cols);
        if (by == 0) return;
        if (to_e.data) add_part(-by, out, g.cols, to_e.row(head));
        if (to_a.data) add_part(by, given, g.cols, to_a.row(head));
      };
      if (to_w.data)
        for (std::size_t i = 0; i < N; ++i) back(i, weight(head, i));
      else
        kernels::for_nonzero(weight.row(head), N, back);
    }
    erased_cotangent(tape, y, memory, of, weight, e, H);
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                                                  \
  template Var<T> cosines(Var<T>, Var<T>, std::span<const int>, std::size_t, T); \
  template Var<T> circular_shift(Var<T>, Var<T>);                                \
  template Var<T> write_cells(Var<T>, std::span<const int>, Var<T>, Var<T>, Var<T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
