// Softmax over two options, whose numbers stand side by side: loops over many pairs at once, where a row by itself would leave
// registers empty. Same values as those for any number of options.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/kernels/softmax.hpp"

namespace hardgrad::kernels {

/// The two numbers of each of n pairs x, apart.
template <class T>
inline void split_pairs(const T* x, std::size_t n, T* first, T* second) {
  for (std::size_t i = 0; i < n; ++i) {
    first[i] = x[2 * i];
    second[i] = x[2 * i + 1];
  }
}

/// Log probabilities of n pairs: y_0 = min(-d, 0) - log(1 + e^-|d|), y_1 = min(d, 0) - log(1 + e^-|d|), d = x_1 - x_0. Two of
/// -inf stay so.
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

/// The cotangent of x from that of y = log softmax(x): to_1 (+)= p_0 g_1 - p_1 g_0 and to_0 (-)= the same. What is impossible
/// (y = -inf) neither gives nor takes.
// Apart, then many at a time: GCC 12 was seen to make wrong products of a plain loop over pairs side by side.
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
