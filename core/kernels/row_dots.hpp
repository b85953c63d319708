// Products of a vector with many short rows. The incomplete last register of a row overlaps the one before (lanes.hpp), so that
// no entry is multiplied alone. A sum for each row: `haddp` of xsimd 8.1 is wrong for floats with AVX-512.
#pragma once

#include "core/kernels/lanes.hpp"

namespace hardgrad::kernels {

/// to[i] = a . x_i for the n rows of x [n, cols].
template <class T>
inline void row_dots(const T* a, const T* x, std::size_t n, std::size_t cols, T* to) {
  for (std::size_t i = 0; i < n; ++i) {
    Batch<T> sum(T{0});
    for_lanes<T>(cols, [&](auto lane) { sum = xsimd::fma(lane.load_own(a), lane.load(x + i * cols), sum); });
    to[i] = lane_sum(sum);
  }
}

/// to[i] = x_i . x_i for the n rows of x [n, cols].
template <class T>
inline void row_squares(const T* x, std::size_t n, std::size_t cols, T* to) {
  for (std::size_t i = 0; i < n; ++i) row_dots(x + i * cols, x + i * cols, 1, cols, to + i);
}

}  // namespace hardgrad::kernels
