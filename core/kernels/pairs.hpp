// Softmax over two options, stored as adjacent pairs. The loops process many pairs at once, because a single pair would leave
// registers mostly empty. The values equal those of the general softmax.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/kernels/softmax.hpp"

namespace hardgrad::kernels {

/// Splits n pairs x into their first and second numbers.
template <class T>
inline void split_pairs(const T* x, std::size_t n, T* first, T* second) {
  for (std::size_t i = 0; i < n; ++i) {
    first[i] = x[2 * i];
    second[i] = x[2 * i + 1];
  }
}

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
    T* to = y + 2 * from;
    for (std::size_t i = 0; i < count; ++i) {
      to[2 * i] = first[i];
      to[2 * i + 1] = second[i];
    }
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
      lane.store(g1, kernels::exp<T>(a) * live1 - kernels::exp<T>(b) * live0);
    });
    T* __restrict out = to + 2 * from;
    for (std::size_t i = 0; i < count; ++i) {
      out[2 * i] = (store ? T{0} : out[2 * i]) - g1[i];
      out[2 * i + 1] = (store ? T{0} : out[2 * i + 1]) + g1[i];
    }
  }
}

}  // namespace hardgrad::kernels
