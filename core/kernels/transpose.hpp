// Transposed squares of registers: as many rows as a register has numbers.
#pragma once

#include <cstring>
#include <utility>

#include "core/kernels/lanes.hpp"

namespace hardgrad::kernels {

template <class T, std::size_t N>
struct Numbers {
  typedef T vector __attribute__((vector_size(N * sizeof(T))));
};

/// The numbers of two registers in turn: a0 b0 a1 b1 ... The first half of them replaces a, the second one b.
template <class T, std::size_t... I>
[[gnu::always_inline]] inline void interleave(T& a, T& b, std::index_sequence<I...>) {
  constexpr int n = sizeof...(I);
  const T first = __builtin_shufflevector(a, b, (static_cast<int>(I) / 2 + static_cast<int>(I) % 2 * n)...);
  b = __builtin_shufflevector(a, b, (n / 2 + static_cast<int>(I) / 2 + static_cast<int>(I) % 2 * n)...);
  a = first;
}

/// to[j][i] = from[i][j], i, j < width<T>; rows begin `stride` and `to_stride` numbers after one another.
template <class T>
[[gnu::always_inline]] inline void transpose_tile(const T* from, std::size_t stride, T* to, std::size_t to_stride) {
  constexpr std::size_t n = width<T>, half = n / 2;
  using Vector = typename Numbers<T, n>::vector;
  Vector rows[n], next[n];
  for (std::size_t i = 0; i < n; ++i) std::memcpy(&rows[i], from + i * stride, sizeof(Vector));
#pragma GCC unroll 8
  for (std::size_t step = 1; step < n; step *= 2) {  // each step moves the highest bit of the row's number to the column's
#pragma GCC unroll 16
    for (std::size_t i = 0; i < half; ++i) {
      next[2 * i] = rows[i], next[2 * i + 1] = rows[i + half];
      interleave(next[2 * i], next[2 * i + 1], std::make_index_sequence<n>{});
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < n; ++i) rows[i] = next[i];
  }
  for (std::size_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, &rows[i], sizeof(Vector));
}

}  // namespace hardgrad::kernels
