// Softmax over a few options: many rows at once, each register one option of several rows. The values equal those of the general
// softmax, which takes one row after the other.
#pragma once

#include "core/kernels/functions.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad::kernels {

inline constexpr std::size_t few_rows = 128;  ///< rows at once: their numbers stay in the first-level cache

/// Numbers of few_rows rows by option.
template <class T>
using ByOption = T[narrow][few_rows];

namespace detail {

template <class T, class Options>
inline void to_options(const T* x, std::size_t rows, Options S, ByOption<T>& of) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < S; ++j) of[j][r] = x[r * S + j];
}

/// to[r] = the sum over the options, in the order of row_sum.
template <class T, class Options>
inline void sum_options(const ByOption<T>& of, std::size_t rows, Options S, double* __restrict to) {
  std::size_t j = 0;
  std::fill_n(to, rows, 0.0);
  if (S >= 4) {
    double parts[4][few_rows] = {};
    for (; j + 4 <= S; j += 4)
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t r = 0; r < rows; ++r) parts[i][r] += static_cast<double>(of[j + i][r]);
    for (std::size_t r = 0; r < rows; ++r) to[r] = (parts[0][r] + parts[2][r]) + (parts[1][r] + parts[3][r]);
  }
  for (; j < S; ++j)
    for (std::size_t r = 0; r < rows; ++r) to[r] += static_cast<double>(of[j][r]);
}

template <class T, class Options>
inline void log_softmax_block(const T* x, std::size_t rows, Options S, T* y) {
  alignas(64) ByOption<T> less, power;  // logits less the largest one
  alignas(64) T shift[few_rows];
  alignas(64) double log_total[few_rows];
  bool found[few_rows] = {};
  to_options(x, rows, S, less);
  std::copy_n(less[0], rows, shift);
  for (std::size_t j = 1; j < S; ++j)
    for (std::size_t r = 0; r < rows; ++r) shift[r] = less[j][r] > shift[r] ? less[j][r] : shift[r];
  for (std::size_t r = 0; r < rows; ++r)
    shift[r] = shift[r] == -std::numeric_limits<T>::infinity() ? T{0} : shift[r];  // a row of only -inf stays one
  for (std::size_t j = 0; j < S; ++j) {
    for (std::size_t r = 0; r < rows; ++r) less[j][r] -= shift[r];
    exp_all(less[j], power[j], rows);
    for (std::size_t r = 0; r < rows; ++r) {  // all but the first of the largest
      const bool largest = less[j][r] == 0 && !found[r];
      power[j][r] = largest ? T{0} : power[j][r];
      found[r] |= largest;
    }
  }
  sum_options(power, rows, S, log_total);
  map(log_total, log_total, rows, [](const Batch<double>& v) { return kernels::log1p<double>(v); });
  for (std::size_t j = 0; j < S; ++j)
    for (std::size_t r = 0; r < rows; ++r) less[j][r] -= static_cast<T>(log_total[r]);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < S; ++j) y[r * S + j] = less[j][r];
}

template <class T, class Options>
inline void log_softmax_backward_block(const T* g, const T* y, std::size_t rows, Options S, T* to, bool store) {
  alignas(64) ByOption<T> live, p;
  alignas(64) T best[few_rows], most[few_rows] = {}, others[few_rows], rest[few_rows], top[few_rows] = {};
  alignas(64) double sum[few_rows];
  to_options(g, rows, S, live);
  to_options(y, rows, S, p);
  for (std::size_t j = 0; j < S; ++j) {
    for (std::size_t r = 0; r < rows; ++r) live[j][r] = p[j][r] == -std::numeric_limits<T>::infinity() ? T{0} : live[j][r];
    exp_all(p[j], p[j], rows);
  }
  std::copy_n(p[0], rows, best);
  for (std::size_t j = 1; j < S; ++j)
    for (std::size_t r = 0; r < rows; ++r) {
      top[r] = p[j][r] > best[r] ? static_cast<T>(j) : top[r];
      best[r] = p[j][r] > best[r] ? p[j][r] : best[r];
    }
  for (std::size_t j = 0; j < S; ++j)
    for (std::size_t r = 0; r < rows; ++r) {
      const bool is_top = top[r] == static_cast<T>(j);
      most[r] = is_top ? live[j][r] : most[r];
      live[j][r] = is_top ? T{0} : live[j][r];
      p[j][r] = is_top ? T{0} : p[j][r];
    }
  sum_options(p, rows, S, sum);
  for (std::size_t r = 0; r < rows; ++r) others[r] = static_cast<T>(sum[r]);
  sum_options(live, rows, S, sum);
  for (std::size_t r = 0; r < rows; ++r) rest[r] = static_cast<T>(sum[r]);
  for (std::size_t r = 0; r < rows; ++r) {
    best[r] = most[r] * others[r] - best[r] * rest[r];
    most[r] += rest[r];
  }
  for (std::size_t j = 0; j < S; ++j)
    for (std::size_t r = 0; r < rows; ++r)
      live[j][r] = (top[r] == static_cast<T>(j) ? best[r] : live[j][r]) - p[j][r] * most[r];
  if (store)
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t j = 0; j < S; ++j) to[r * S + j] = live[j][r];
  else
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t j = 0; j < S; ++j) to[r * S + j] += live[j][r];
}

/// Calls f(first row, rows, S) for blocks of rows; a few S are compile-time constants.
template <class F>
inline void for_few(std::size_t rows, std::size_t S, F&& f) {
  for (std::size_t first = 0; first < rows; first += few_rows) {
    const std::size_t n = std::min(few_rows, rows - first);
    if (S == 3)
      f(first, n, std::integral_constant<std::size_t, 3>());
    else if (S == 4)
      f(first, n, std::integral_constant<std::size_t, 4>());
    else
      f(first, n, S);
  }
}

}  // namespace detail

/// True for as many rows and as few options as are faster at once.
inline bool few_options(std::size_t rows, std::size_t S) { return rows >= 16 && S >= 3 && S <= narrow; }

/// y = log softmax of the rows of x [rows, S]; impossible options have -inf.
template <class T>
inline void log_softmax_few(const T* x, std::size_t rows, std::size_t S, T* y) {
  detail::for_few(rows, S, [&](std::size_t first, std::size_t n, auto S) {
    detail::log_softmax_block(x + first * S, n, S, y + first * S);
  });
}
/// The cotangent of x from that of y: stored, or added.
template <class T>
inline void log_softmax_few_backward(const T* g, const T* y, std::size_t rows, std::size_t S, T* to, bool store) {
  detail::for_few(rows, S, [&](std::size_t first, std::size_t n, auto S) {
    detail::log_softmax_backward_block(g + first * S, y + first * S, n, S, to + first * S, store);
  });
}

}  // namespace hardgrad::kernels
