// Reductions over one row: maxima, dot products, and sums accumulated in double.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "core/kernels/lanes.hpp"

namespace hardgrad::kernels {

/// Largest of n >= 1 numbers.
template <class T>
inline T row_max(const T* x, std::size_t n) {
  constexpr std::size_t w = width<T>;
  const auto larger = [](T a, T b) { return b > a ? b : a; };
  if (n < w) {
    T parts[4] = {x[0], x[0], x[0], x[0]}, most;  // four independent chains
    std::size_t i = 1;
    for (; i + 4 <= n; i += 4)
      for (std::size_t j = 0; j < 4; ++j) parts[j] = larger(parts[j], x[i + j]);
    most = larger(larger(parts[0], parts[1]), larger(parts[2], parts[3]));
    for (; i < n; ++i) most = larger(most, x[i]);
    return most;
  }
  auto most = Batch<T>::load_unaligned(x);
  for (std::size_t i = w; i + w <= n; i += w) most = xsimd::max(most, Batch<T>::load_unaligned(x + i));
  most = xsimd::max(most, Batch<T>::load_unaligned(x + n - w));  // may overlap: harmless for a maximum
  alignas(64) T parts[w];
  most.store_aligned(parts);
  return *std::max_element(parts, parts + w);
}

/// The first index of `value` among n numbers; n if there is none.
template <class T>
inline std::size_t find(const T* x, std::size_t n, T value) {
  constexpr std::size_t block = 64;  // no early exit within a block, so that the loop is vectorised
  std::size_t from = 0;
  for (; from + block <= n; from += block) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < block; ++j) bits |= x[from + j] == value;
    if (bits) break;
  }
  return static_cast<std::size_t>(std::find(x + from, x + n, value) - x);
}

/// f(i, x[i]) for the numbers that are not 0; blocks of zeros, as in the weights of hard choices, are skipped as a whole.
template <class T, class F>
inline void for_nonzero(const T* x, std::size_t n, F&& f) {
  constexpr std::size_t block = 16;
  std::size_t i = 0;
  const auto visit = [&](std::size_t end) {
    for (; i < end; ++i)
      if (x[i] != 0) f(i, x[i]);
  };
  while (i + block <= n) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < block; ++j) bits |= x[i + j] != 0;
    if (bits)
      visit(i + block);
    else
      i += block;
  }
  visit(n);
}

/// Adds the whole blocks of x[i .. n) to `total`, in `w` independent partial sums; returns the index after the last block.
template <std::size_t w, class T>
inline std::size_t add_blocks(const T* x, std::size_t i, std::size_t n, double& total) {
  if (i + w > n) return i;
  double parts[w] = {};
  for (; i + w <= n; i += w)
    for (std::size_t j = 0; j < w; ++j) parts[j] += static_cast<double>(x[i + j]);
  for (std::size_t half = w / 2; half > 0; half /= 2)
    for (std::size_t j = 0; j < half; ++j) parts[j] += parts[j + half];
  total += parts[0];
  return i;
}

/// sum_i x[i], in double. Independent partial sums let the compiler vectorise; the order of summation is fixed.
template <class T>
inline double row_sum(const T* x, std::size_t n) {
  double total = 0;
  std::size_t i = add_blocks<16>(x, 0, n, total);
  i = add_blocks<4>(x, i, n, total);
  for (; i < n; ++i) total += static_cast<double>(x[i]);
  return total;
}

/// sum_i g[i] x[i] over the g[i] != 0, in double. In partial sums of selected products GCC 12 made an error (AVX-512).
template <class G, class T>
inline double live_dot(const G* g, const T* x, std::size_t n) {
  constexpr std::size_t block = 64;
  double products[block], total = 0;
  for (std::size_t first = 0; first < n; first += block) {
    const std::size_t count = std::min(block, n - first);
    for (std::size_t i = 0; i < count; ++i)
      products[i] = g[first + i] == 0 ? 0.0 : static_cast<double>(g[first + i]) * static_cast<double>(x[first + i]);
    total += row_sum(products, count);
  }
  return total;
}

/// sum_i a[i] b[i], in T.
template <class T>
inline T dot(const T* a, const T* b, std::size_t n) {
  constexpr std::size_t w = width<T>;
  T total{0};
  std::size_t i = 0;
  if (n >= w) {
    Batch<T> sum(T{0});
    for (; i + w <= n; i += w) sum = xsimd::fma(Batch<T>::load_unaligned(a + i), Batch<T>::load_unaligned(b + i), sum);
    total = lane_sum(sum);
  }
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

/// to[j] (+)= sum_r weight[r] x[r, j], accumulated in double; x [rows, cols], a row every `stride` numbers (0: cols). A null
/// `weight` means 1.
template <class T>
inline void column_sums(const T* x, std::size_t rows, std::size_t cols, T* to, bool store, const T* weight = nullptr,
                        std::size_t stride = 0) {
  constexpr std::size_t block = 256;
  double sums[block];
  for (std::size_t from = 0; from < cols; from += block) {
    const std::size_t n = std::min(block, cols - from);
    std::fill_n(sums, n, 0.0);
    for (std::size_t r = 0; r < rows; ++r) {
      const double w = weight ? static_cast<double>(weight[r]) : 1.0;
      const T* row = x + r * (stride > 0 ? stride : cols) + from;
      for (std::size_t j = 0; j < n; ++j) sums[j] += w * static_cast<double>(row[j]);
    }
    for (std::size_t j = 0; j < n; ++j) to[from + j] = static_cast<T>(sums[j]) + (store ? T{0} : to[from + j]);
  }
}

// Products of a vector with many short rows. The incomplete last register of a row overlaps the one before (lanes.hpp), so that
// no entry is multiplied alone. A sum for each row: `haddp` of xsimd 8.1 is wrong for floats with AVX-512.

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

// Loops over short rows, whose length is a constant to the compiler.

inline constexpr std::size_t narrow = 15;  ///< the longest of them

/// Calls f(cols) with the same value, as a compile-time constant if it is 1 to `narrow`.
template <std::size_t N = 1, class F>
inline void for_width(std::size_t cols, F&& f) {
  if (cols == N)
    f(std::integral_constant<std::size_t, N>{});
  else if constexpr (N < narrow)
    for_width<N + 1>(cols, f);
  else
    f(cols);
}

}  // namespace hardgrad::kernels
