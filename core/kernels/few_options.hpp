// Softmax over a few options: many rows at once, each register one option of several rows. The values equal those of the general
// softmax, which takes one row after the other.
#pragma once

#include <type_traits>
#include <utility>

#include "core/kernels/functions.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad::kernels {

inline constexpr std::size_t few_rows = 128;  ///< rows at once: their numbers stay in the first-level cache

/// Numbers of few_rows rows by option.
template <class T>
using ByOption = T[narrow][few_rows];

namespace detail {

// Adjacent rows of S numbers and the registers of their options, by shuffles, as in pairs.hpp.

template <std::size_t S, std::size_t k, std::size_t o, class V, std::size_t... i>
inline V option_of(const V& so_far, const V* x, std::index_sequence<i...> lanes) {
  constexpr std::size_t w = sizeof...(i);
  if constexpr (k == S)
    return so_far;
  else
    return option_of<S, k + 1, o>(V(__builtin_shufflevector(so_far, x[k],
                                                            int((i * S + o) / w == k             ? w + (i * S + o) % w
                                                                : k == 1 && (i * S + o) / w == 0 ? (i * S + o) % w
                                                                                                 : i)...)),
                                  x, lanes);
}
template <std::size_t S, std::size_t o, std::size_t k, class V, std::size_t... i>
inline V row_of(const V& so_far, const V* option, std::index_sequence<i...> lanes) {
  constexpr std::size_t w = sizeof...(i);
  if constexpr (o == S)
    return so_far;
  else
    return row_of<S, o + 1, k>(V(__builtin_shufflevector(so_far, option[o],
                                                         int((k * w + i) % S == o             ? w + (k * w + i) / S
                                                             : o == 1 && (k * w + i) % S == 0 ? (k * w + i) / S
                                                                                              : i)...)),
                               option, lanes);
}

/// of[j][r] = x[r S + j]
template <class T, class Options>
inline void to_options(const T* x, std::size_t rows, Options S, ByOption<T>& of) {
  std::size_t r = 0;
  if constexpr (!std::is_same_v<Options, std::size_t>) {
    constexpr std::size_t w = width<T>, n = Options::value;
    constexpr auto lanes = std::make_index_sequence<w>();
    using V = decltype(Batch<T>().data);
    for (; r + w <= rows; r += w) {
      V in[n];
      for (std::size_t k = 0; k < n; ++k) in[k] = Batch<T>::load_unaligned(x + r * n + k * w).data;
      [&]<std::size_t... o>(std::index_sequence<o...>) {
        (Batch<T>(option_of<n, 1, o>(in[0], in, lanes)).store_unaligned(of[o] + r), ...);
      }
      (std::make_index_sequence<n>());
    }
  }
  for (; r < rows; ++r)
    for (std::size_t j = 0; j < S; ++j) of[j][r] = x[r * S + j];
}
/// x[r S + j] (+)= of[j][r]
template <class T, class Options>
inline void from_options(const ByOption<T>& of, std::size_t rows, Options S, T* x, bool store) {
  std::size_t r = 0;
  if constexpr (!std::is_same_v<Options, std::size_t>) {
    constexpr std::size_t w = width<T>, n = Options::value;
    constexpr auto lanes = std::make_index_sequence<w>();
    using V = decltype(Batch<T>().data);
    for (; r + w <= rows; r += w) {
      V option[n];
      for (std::size_t j = 0; j < n; ++j) option[j] = Batch<T>::load_unaligned(of[j] + r).data;
      [&]<std::size_t... k>(std::index_sequence<k...>) {
        const auto put = [&](T* to, const Batch<T>& row) {
          (store ? row : Batch<T>::load_unaligned(to) + row).store_unaligned(to);
        };
        (put(x + r * n + k * w, Batch<T>(row_of<n, 1, k>(option[0], option, lanes))), ...);
      }
      (std::make_index_sequence<n>());
    }
  }
  for (; r < rows; ++r)
    for (std::size_t j = 0; j < S; ++j) x[r * S + j] = store ? of[j][r] : x[r * S + j] + of[j][r];
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
  alignas(64) double log_total[few_rows];
  to_options(x, rows, S, less);
  for_lanes<T>(rows, [&](auto lane) {
    const Batch<T> zero(T{0}), none(-std::numeric_limits<T>::infinity());
    Batch<T> most = lane.load(less[0]);
    for (std::size_t j = 1; j < S; ++j) most = xsimd::select(lane.load(less[j]) > most, lane.load(less[j]), most);
    most = xsimd::select(most == none, zero, most);  // a row of only -inf stays one
    auto left = zero == zero;                        // the largest is not found yet
    for (std::size_t j = 0; j < S; ++j) {
      const Batch<T> below = lane.load(less[j]) - most;
      const auto largest = (below == zero) & left;  // all but the first of the largest count
      lane.store(power[j], xsimd::select(largest, zero, kernels::exp<T>(below)));
      left = left & !largest;
      lane.store(less[j], below);
    }
  });
  sum_options(power, rows, S, log_total);
  map(log_total, log_total, rows, [](const Batch<double>& v) { return kernels::log1p<double>(v); });
  for (std::size_t j = 0; j < S; ++j)
    for (std::size_t r = 0; r < rows; ++r) less[j][r] -= static_cast<T>(log_total[r]);
  from_options(less, rows, S, y, true);
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
  from_options(live, rows, S, to, store);
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
