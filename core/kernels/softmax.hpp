// Softmax over rows, in place, with exp on registers and the normaliser in double.
#pragma once

#include <cmath>
#include <limits>

#include "core/kernels/functions.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad::kernels {

template <class T>
inline constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

/// Rows are worked off in groups of about this many numbers, which stay in the first-level cache while one
/// vector loop runs over all of them: short rows would leave the registers half empty.
inline constexpr std::size_t group_size = 2048;

inline std::size_t rows_per_group(std::size_t cols) {
  return std::max<std::size_t>(1, group_size / std::max<std::size_t>(1, cols));
}

/// A row of n numbers becomes its exp(x - most), `most` its largest; returns their sum.
template <class T>
inline double exp_row(T* x, std::size_t n, T most) {
  const Batch<T> shift(most);
  map(x, x, n, [&](const Batch<T>& v) { return kernels::exp<T>(v - shift); });
  return row_sum(x, n);
}

}  // namespace hardgrad::kernels
