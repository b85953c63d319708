// Softmax over rows, in place, with a vectorised exp and the normaliser in double.
#pragma once

#include <cmath>
#include <limits>

#include "core/kernels/functions.hpp"
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

}  // namespace hardgrad::kernels
