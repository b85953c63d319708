// Adjacent pairs of numbers and their separate first and second numbers, by shuffles of whole registers: g++ 14 does not
// vectorise the plain loops.
#pragma once

#include <cstddef>
#include <utility>

#include "core/kernels/lanes.hpp"

namespace hardgrad::kernels {

template <class T>
struct PairOfLanes {
  Batch<T> first, second;
};

namespace detail {

template <class T, std::size_t... i>
inline PairOfLanes<T> split(const Batch<T>& low, const Batch<T>& high, std::index_sequence<i...>) {
  return {__builtin_shufflevector(low.data, high.data, int(2 * i)...),
          __builtin_shufflevector(low.data, high.data, int(2 * i + 1)...)};
}
template <class T, std::size_t... i>
inline PairOfLanes<T> join(const Batch<T>& first, const Batch<T>& second, std::index_sequence<i...>) {
  constexpr std::size_t w = sizeof...(i);
  return {__builtin_shufflevector(first.data, second.data, int(i / 2 + i % 2 * w)...),
          __builtin_shufflevector(first.data, second.data, int(w / 2 + i / 2 + i % 2 * w)...)};
}

}  // namespace detail

/// A register's worth of the pairs at x.
template <class T>
inline PairOfLanes<T> load_pairs(const T* x) {
  return detail::split<T>(Batch<T>::load_unaligned(x), Batch<T>::load_unaligned(x + width<T>),
                          std::make_index_sequence<width<T>>());
}
/// Puts them back: x[2 i] = first[i], x[2 i + 1] = second[i].
template <class T>
inline void store_pairs(const Batch<T>& first, const Batch<T>& second, T* x) {
  const auto joined = detail::join<T>(first, second, std::make_index_sequence<width<T>>());
  joined.first.store_unaligned(x);
  joined.second.store_unaligned(x + width<T>);
}

/// Splits n pairs x into their first and second numbers.
template <class T>
inline void split_pairs(const T* x, std::size_t n, T* first, T* second) {
  std::size_t i = 0;
  for (; i + width<T> <= n; i += width<T>) {
    const auto pairs = load_pairs(x + 2 * i);
    pairs.first.store_unaligned(first + i);
    pairs.second.store_unaligned(second + i);
  }
  for (; i < n; ++i) {
    first[i] = x[2 * i];
    second[i] = x[2 * i + 1];
  }
}
/// x[2 i] = first[i], x[2 i + 1] = second[i]
template <class T>
inline void join_pairs(const T* first, const T* second, std::size_t n, T* x) {
  std::size_t i = 0;
  for (; i + width<T> <= n; i += width<T>)
    store_pairs(Batch<T>::load_unaligned(first + i), Batch<T>::load_unaligned(second + i), x + 2 * i);
  for (; i < n; ++i) {
    x[2 * i] = first[i];
    x[2 * i + 1] = second[i];
  }
}
/// x[2 i] += first[i], x[2 i + 1] += second[i]
template <class T>
inline void add_pairs(const T* first, const T* second, std::size_t n, T* x) {
  std::size_t i = 0;
  for (; i + width<T> <= n; i += width<T>) {
    const auto pairs = load_pairs(x + 2 * i);
    store_pairs<T>(pairs.first + Batch<T>::load_unaligned(first + i), pairs.second + Batch<T>::load_unaligned(second + i),
                   x + 2 * i);
  }
  for (; i < n; ++i) {
    x[2 * i] += first[i];
    x[2 * i + 1] += second[i];
  }
}

}  // namespace hardgrad::kernels
