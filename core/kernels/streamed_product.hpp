// Products with one matrix far larger than the others, such as few rows times the weights of a large layer. Its numbers go
// through the registers once, from where they lie. BLAS would copy it first, which takes as long as few rows' multiplications.
//
// The right factor is copied into panels of two registers' columns. A block of the result stays in registers over the inner
// index: one number of the left factor after another, along its rows or its columns, times one line of a panel.
#pragma once

#include <algorithm>
#include <vector>

#include "core/kernels/lanes.hpp"
#include "core/kernels/small_product.hpp"

namespace hardgrad::kernels {

/// Rows of a block: with two registers each, two for a line of the panel and one for the number, they fit into 32 registers with
/// AVX-512, else into 16.
template <class T>
inline constexpr std::size_t streamed_rows = width<T> * sizeof(T) == 64 ? 12 : 6;

/// True if `multiply_streamed` is faster than BLAS (measured): a factor exceeds the second-level cache and meets few rows or
/// columns, which fill registers to three quarters; or few products are added to a result that exceeds all caches.
template <class T>
constexpr bool streams(std::size_t rows, std::size_t inner, std::size_t cols) {
  constexpr std::size_t most = 64, large = 1 << 20;
  const auto few = std::min(rows, cols);
  if (inner < few) return inner <= most && rows * cols >= 8 * large;
  const auto registers = (few + width<T> - 1) / width<T>;
  return few <= most && 4 * few >= 3 * registers * width<T> && inner * std::max(rows, cols) >= large;
}

/// R rows and C registers of a product: entry (r, j) of c, for j < `cols`, is c[r down + j right] = beta c + sum_l a(r, l) p(l, j),
/// with lines of C registers in `panel`. The rows or the columns of a are contiguous.
template <std::size_t R, std::size_t C, class T>
inline void multiply_panel(Strided<T> a, const T* panel, std::size_t inner, T* c, std::size_t down, std::size_t right,
                           std::size_t cols, T beta) {
  Batch<T> sums[R][C];
  for (auto& row : sums)
    for (auto& sum : row) sum = Batch<T>(T{0});
  const auto add = [&](auto number, auto fetch) {
    for (std::size_t l = 0; l < inner; ++l, panel += C * width<T>) {
      Batch<T> line[C];
      for (std::size_t s = 0; s < C; ++s) line[s] = Batch<T>::load_unaligned(panel + s * width<T>);
      fetch(l);
      for (std::size_t r = 0; r < R; ++r) {
        const Batch<T> x(number(r, l));
        for (std::size_t s = 0; s < C; ++s) sums[r][s] = xsimd::fma(x, line[s], sums[r][s]);
      }
    }
  };
  const auto along = [&](std::size_t r, std::size_t l) { return a.data[r * a.down + l]; };
  const auto across = [&](std::size_t r, std::size_t l) { return a.data[l * a.right + r]; };
  // The processor does not foresee reads of a few numbers from each of many rows: they are fetched five blocks ahead.
  if (a.right == 1)
    add(along, [](std::size_t) {});
  else if (right == 1)
    add(across, [](std::size_t) {});  // a is the smaller matrix
  else
    add(across, [&](std::size_t l) { __builtin_prefetch(a.data + l * a.right + 64); });
  if (right == 1 && cols == C * width<T>) {
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t s = 0; s < C; ++s) {
        T* to = c + r * down + s * width<T>;
        (beta == 0 ? sums[r][s] : xsimd::fma(Batch<T>(beta), Batch<T>::load_unaligned(to), sums[r][s])).store_unaligned(to);
      }
    return;
  }
  alignas(64) T all[R][C * width<T>];
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t s = 0; s < C; ++s) sums[r][s].store_aligned(&all[r][s * width<T>]);
  for (std::size_t j = 0; j < cols; ++j)
    for (std::size_t r = 0; r < R; ++r) {
      T& to = c[r * down + j * right];
      to = beta == 0 ? all[r][j] : beta * to + all[r][j];
    }
}

/// c = beta c + alpha a b: a [rows, inner], with contiguous rows or columns, is read in place; b [inner, cols] is copied. Entry
/// (i, j) of c is c[i down + j right], which is not read if beta is 0.
template <class T>
inline void multiply_streamed(Strided<T> a, Strided<T> b, T* c, std::size_t down, std::size_t right, std::size_t rows,
                              std::size_t inner, std::size_t cols, T beta, T alpha) {
  constexpr std::size_t two = 2 * width<T>;
  const auto columns = (cols + width<T> - 1) / width<T> * width<T>;  // the last panel may have one register
  std::vector<T> panels(columns * inner);
  auto entry = panels.begin();
  for (std::size_t first = 0; first < columns; first += two)
    for (std::size_t l = 0; l < inner; ++l)
      for (std::size_t j = first; j < std::min(first + two, columns); ++j) *entry++ = j < cols ? alpha * b(l, j) : T{0};
  // Across the rows of a, a block reads a part of a line of each. The next block finds the rest of 256 of them in the cache.
  const std::size_t most = a.right == 1 ? inner : 256;
  for (std::size_t l = 0; l < inner; l += most) {
    const auto n = std::min(most, inner - l);
    const auto block = [&]<std::size_t R>(std::size_t i) {
      const Strided<T> from{&a(i, l), a.down, a.right};
      for (std::size_t j = 0; j < columns; j += two) {
        const auto used = std::min(two, cols - j);
        T* to = c + i * down + j * right;
        if (columns - j >= two)
          multiply_panel<R, 2>(from, &panels[j * inner + l * two], n, to, down, right, used, l == 0 ? beta : T{1});
        else
          multiply_panel<R, 1>(from, &panels[j * inner + l * width<T>], n, to, down, right, used, l == 0 ? beta : T{1});
      }
      return i + R;
    };
    std::size_t i = 0;
    while (i + streamed_rows<T> <= rows) i = block.template operator()<streamed_rows<T>>(i);
    while (i + 4 <= rows) i = block.template operator()<4>(i);
    while (i < rows) i = block.template operator()<1>(i);
  }
}

}  // namespace hardgrad::kernels
