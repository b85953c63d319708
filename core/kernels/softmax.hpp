// Softmax over rows, in place, with a vectorised exp and the normaliser in double; over pairs; and the cross-entropy of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/kernels/functions.hpp"
#include "core/kernels/pairs.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad::kernels {

template <class T>
inline constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

/// Rows are processed in groups of about this many numbers. A group fits the first-level cache, and one vector loop runs over
/// all of it, because short rows alone would leave registers partly empty.
inline constexpr std::size_t group_size = 2048;

inline std::size_t rows_per_group(std::size_t cols) {
  return std::max<std::size_t>(1, group_size / std::max<std::size_t>(1, cols));
}

/// Replaces a row of n numbers by exp(x - most), where `most` is its maximum; returns the sum.
template <class T>
inline double exp_row(T* x, std::size_t n, T most) {
  const Batch<T> shift(most);
  map(x, x, n, [&](const Batch<T>& v) { return kernels::exp<T>(v - shift); });
  return row_sum(x, n);
}

// Softmax over two options, stored as adjacent pairs. The loops process many pairs at once, because a single pair would leave
// registers mostly empty. The values equal those of the general softmax.

/// Log probabilities of n pairs: y_0 = min(-d, 0) - log(1 + e^-|d|), y_1 = min(d, 0) - log(1 + e^-|d|), d = x_1 - x_0. A pair
/// of two -inf gives two -inf.
template <class T>
inline void log_softmax_pairs(const T* x, std::size_t n, T* y) {
  constexpr std::size_t block = 512;
  T first[block], second[block];
  for (std::size_t from = 0; from < n; from += block) {
    const std::size_t count = std::min(block, n - from);
    split_pairs(x + 2 * from, count, first, second);
    for_lanes<T>(count, [&](auto lane) {
      const Batch<T> a = lane.load(first), b = lane.load(second), d = b - a, zero(T{0}), none(minus_infinity<T>);
      const Batch<T> log_total = kernels::log1p_unit<T>(kernels::exp<T>(-xsimd::abs(d)));
      const auto impossible = (a == none) & (b == none);
      lane.store(first, xsimd::select(impossible, none, xsimd::min(-d, zero) - log_total));
      lane.store(second, xsimd::select(impossible, none, xsimd::min(d, zero) - log_total));
    });
    join_pairs(first, second, count, y + 2 * from);
  }
}

/// The cotangent of x from that of y = log softmax(x): to_1 (+)= p_0 g_1 - p_1 g_0, and to_0 (-)= the same. Options with
/// y = -inf do not contribute and get 0.
// The pairs are split first, because GCC 12 miscompiled the products in a plain loop over adjacent pairs.
template <class T>
inline void log_softmax_pairs_backward(const T* g, const T* y, std::size_t n, T* to, bool store) {
  constexpr std::size_t block = 512;
  T g0[block], g1[block], y0[block], y1[block];
  for (std::size_t from = 0; from < n; from += block) {
    const std::size_t count = std::min(block, n - from);
    split_pairs(g + 2 * from, count, g0, g1);
    split_pairs(y + 2 * from, count, y0, y1);
    for_lanes<T>(count, [&](auto lane) {
      const Batch<T> none(minus_infinity<T>), zero(T{0}), a = lane.load(y0), b = lane.load(y1);
      const Batch<T> live0 = xsimd::select(a == none, zero, lane.load(g0)),
                     live1 = xsimd::select(b == none, zero, lane.load(g1));
      const Batch<T> give = kernels::exp<T>(a) * live1 - kernels::exp<T>(b) * live0;
      lane.store(g0, zero - give);
      lane.store(g1, give);
    });
    if (store)
      join_pairs(g0, g1, count, to + 2 * from);
    else
      add_pairs(g0, g1, count, to + 2 * from);
  }
}

// Softmax cross-entropy of rows of logits, with its gradient.

/// Results of rows of logits l [n, V], one entry a row.
template <class T>
struct ClassRows {
  const int* label;  ///< -1: none
  T* loss;           ///< -log softmax(l)[label]; 0 without a label. May be null.
  int* guess;        ///< the most probable class. May be null.
};

namespace detail {

/// Turns a row exp(l - m) with sum `total` into softmax(l) - one-hot(label).
template <class T>
inline void logit_gradient(T* row, std::size_t n, double total, int label) {
  if (label < 0) {
    std::fill_n(row, n, T{0});
    return;
  }
  const T scale = static_cast<T>(1 / total);
  for (std::size_t j = 0; j < n; ++j) row[j] *= scale;
  row[label] -= T{1};
}

/// log(total) + above of each row with a label; `total` becomes its logarithm.
template <class T>
inline void put_losses(double* total, const double* above, std::size_t n, const ClassRows<T>& to) {
  map(total, total, n, [](const Batch<double>& v) { return xsimd::log(v); });
  for (std::size_t r = 0; r < n; ++r) to.loss[r] = to.label[r] < 0 ? T{0} : static_cast<T>(total[r] + above[r]);
}

/// At most as many rows as a register has entries, of `narrow` classes at most: each register has one class of all rows.
template <class T, class Classes>
inline void classify_narrow(T* l, std::size_t rows, Classes classes, const ClassRows<T>& to, bool form) {
  constexpr std::size_t w = width<T>;
  alignas(64) T x[narrow * w];  // [class, row]
  alignas(64) T most[w];
  alignas(64) double total[w] = {}, above[w];
  int guess[w];
  if (rows < w) std::fill_n(x, classes * w, T{0});
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < classes; ++j) x[j * w + r] = l[r * classes + j];
  std::copy_n(x, w, most);
  std::fill_n(guess, w, 0);
  for (std::size_t j = 1; j < classes; ++j)
    for (std::size_t r = 0; r < w; ++r) {
      const bool more = x[j * w + r] > most[r];
      guess[r] = more ? static_cast<int>(j) : guess[r];
      most[r] = more ? x[j * w + r] : most[r];
    }
  for (std::size_t r = 0; r < rows; ++r)
    above[r] = to.label[r] < 0 ? 0 : static_cast<double>(most[r]) - static_cast<double>(x[to.label[r] * w + r]);
  const auto shift = Batch<T>::load_aligned(most);
  for (std::size_t j = 0; j < classes; ++j) {
    kernels::exp<T>(Batch<T>::load_aligned(x + j * w) - shift).store_aligned(x + j * w);
    for (std::size_t r = 0; r < w; ++r) total[r] += static_cast<double>(x[j * w + r]);
  }
  if (form) {
    alignas(64) T scale[w];
    for (std::size_t r = 0; r < w; ++r) scale[r] = static_cast<T>(1 / total[r]);
    for (std::size_t j = 0; j < classes; ++j)
      for (std::size_t r = 0; r < w; ++r) x[j * w + r] *= scale[r];
    for (std::size_t r = 0; r < rows; ++r) {
      T* row = l + r * classes;
      for (std::size_t j = 0; j < classes; ++j) row[j] = x[j * w + r];
      if (to.label[r] < 0)
        std::fill_n(row, classes, T{0});
      else
        row[to.label[r]] -= T{1};
    }
  }
  if (to.guess) std::copy_n(guess, rows, to.guess);
  if (to.loss) put_losses(total, above, rows, to);
}

/// At most `most_rows` rows.
inline constexpr std::size_t most_rows = 128;
template <class T>
inline void classify_wide(T* l, std::size_t rows, std::size_t classes, const ClassRows<T>& to, bool form) {
  double total[most_rows], above[most_rows];  // above: largest logit minus the label's
  for (std::size_t r = 0; r < rows; ++r) {
    T* __restrict row = l + r * classes;
    const T most = row_max(row, classes);
    if (to.guess)
      to.guess[r] = static_cast<int>(std::min(kernels::find(row, classes, most), classes - 1));  // a NaN is not found
    above[r] = to.label[r] < 0 ? 0 : static_cast<double>(most) - static_cast<double>(row[to.label[r]]);
    for (std::size_t j = 0; j < classes; ++j) row[j] -= most;
  }
  exp_all(l, l, rows * classes);
  for (std::size_t r = 0; r < rows; ++r) {
    total[r] = row_sum(l + r * classes, classes);
    if (form) logit_gradient(l + r * classes, classes, total[r], to.label[r]);
  }
  if (to.loss) put_losses(total, above, rows, to);
}

}  // namespace detail

/// Losses and most probable classes of the rows of logits l [rows, classes]. The rows become softmax(l) - one-hot(label), 0
/// without a label, if `form`; otherwise their values are undefined.
template <class T>
inline void classify(T* l, std::size_t rows, std::size_t classes, ClassRows<T> to, bool form) {
  const bool few = classes <= narrow;
  const std::size_t block = few ? width<T> : std::min(detail::most_rows, rows_per_group(classes));
  for (std::size_t from = 0; from < rows; from += block) {
    const std::size_t n = std::min(block, rows - from);
    const ClassRows<T> some{to.label + from, to.loss ? to.loss + from : nullptr, to.guess ? to.guess + from : nullptr};
    if (few)
      for_width(classes, [&](auto constant) { detail::classify_narrow(l + from * classes, n, constant, some, form); });
    else
      detail::classify_wide(l + from * classes, n, classes, some, form);
  }
}

}  // namespace hardgrad::kernels
