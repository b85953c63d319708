// Products of matrices, for sizes at which the copies of BLAS take a share of the time.
//
// A block of rows of the result and two registers of its columns stay in registers over the inner index: one number of the left
// factor for each row times a line of the right factor. The left factor is read where it lies, and so is the right one if its rows
// are contiguous; else its columns are transposed first. Sums run in the order of the inner index.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/kernels/lanes.hpp"
#include "core/kernels/small_product.hpp"
#include "core/kernels/transpose.hpp"

namespace hardgrad::kernels {

/// Rows of a block: with two registers each, two for a line and one for the number, they fit into 32 registers with AVX-512, else
/// into 16.
template <class T>
inline constexpr std::size_t block_rows = width<T> * sizeof(T) == 64 ? 12 : 6;

/// c = beta c + alpha (a product): entry (i, j) is data[i * down + j * right], where down or right is 1. It is not read if beta is 0.
template <class T>
struct Result {
  T* data;
  std::size_t down, right;
  T beta, alpha;
};

/// C registers of columns, from column `from` on. If fewer columns are left, the last register ends with the last column, and its
/// first `others` columns are not its own.
template <std::size_t C, class T>
struct Columns {
  std::size_t from, last, others = 0;
  xsimd::batch_bool<T> own;

  Columns(std::size_t from, std::size_t cols) : from(from), last(from + (C - 1) * width<T>) {
    if (last + width<T> <= cols) return;
    others = last + width<T> - cols;
    own = from_entry<T>(others);
    last -= others;
  }
  /// First column of a register.
  std::size_t at(std::size_t s) const { return s + 1 == C ? last : from + s * width<T>; }
};

/// beta to + alpha sum for N numbers in memory.
template <std::size_t N, class T>
[[gnu::always_inline]] inline void put(const T* sums, T* to, T beta, T alpha) {
  typename Numbers<T, N>::vector sum, before;
  std::memcpy(&sum, sums, sizeof sum);
  if (beta != 0) std::memcpy(&before, to, sizeof before);
  sum = beta == 0 ? alpha * sum : beta * before + alpha * sum;
  std::memcpy(to, &sum, sizeof sum);
}

/// Writes the sums of R rows from row i on.
template <std::size_t R, std::size_t C, class T>
[[gnu::always_inline]] inline void store(const Batch<T> (&sums)[R][C], const Result<T> c, std::size_t i,
                                         const Columns<C, T>& columns) {
  constexpr std::size_t n = width<T>, tall = (R + n - 1) / n * n, piece = R % 4 == 0 ? 4 : R % 2 == 0 ? 2 : 1;
  if (c.right == 1) {
    const auto all = [&](auto combined) {  // unrolled, so that the sums stay in registers
#pragma GCC unroll 16
      for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (std::size_t s = 0; s < C; ++s) {
          T* to = c.data + (i + r) * c.down + columns.at(s);
          auto sum = combined(sums[r][s], to);
          if (s + 1 == C && columns.others > 0) sum = xsimd::select(columns.own, sum, Batch<T>::load_unaligned(to));
          sum.store_unaligned(to);
        }
    };
    if (c.beta == 0 && c.alpha == 1)
      all([](const Batch<T>& sum, const T*) { return sum; });
    else if (c.beta == 0)
      all([&](const Batch<T>& sum, const T*) { return c.alpha * sum; });
    else
      all([&](const Batch<T>& sum, const T* to) {
        return xsimd::fma(Batch<T>(c.beta), Batch<T>::load_unaligned(to), c.alpha * sum);
      });
    return;
  }
  alignas(64) T rows[C][tall][n], turned[n][tall];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (std::size_t s = 0; s < C; ++s) sums[r][s].store_aligned(rows[s][r]);
  for (std::size_t s = 0; s < C; ++s) {
    for (std::size_t r = 0; r < R; r += n) transpose_tile(rows[s][r], n, &turned[0][r], tall);
    const std::size_t first = s + 1 == C ? columns.others : 0;
    for (std::size_t j = first; j < n; ++j) {
      T* to = c.data + i + (columns.at(s) + j) * c.right;
      for (std::size_t r = 0; r < R; r += piece) put<piece>(&turned[j][r], to + r, c.beta, c.alpha);
    }
  }
}

/// Lines of the right factor: C registers, the last one `last` numbers after the first.
template <class T>
struct Lines {
  const T* data;
  std::size_t stride, last;
};

/// R rows and C registers' columns of a product.
template <std::size_t R, std::size_t C, class T>
inline void multiply_block(Strided<T> a, std::size_t i, Lines<T> b, std::size_t inner, const Result<T>& c,
                           const Columns<C, T>& columns) {
  Batch<T> sums[R][C];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (std::size_t s = 0; s < C; ++s) sums[r][s] = Batch<T>(T{0});
  const auto add = [&](auto number, auto fetch) {
    const T* line = b.data;
    for (std::size_t l = 0; l < inner; ++l, line += b.stride) {
      Batch<T> numbers[C];
      for (std::size_t s = 0; s < C; ++s) numbers[s] = Batch<T>::load_unaligned(line + (s + 1 == C ? b.last : s * width<T>));
      fetch(l);
      for (std::size_t r = 0; r < R; ++r) {
        const Batch<T> factor(number(r, l));
        for (std::size_t s = 0; s < C; ++s) sums[r][s] = xsimd::fma(factor, numbers[s], sums[r][s]);
      }
    }
  };
  const T* x = &a(i, 0);
  if (a.right == 1)
    add([&](std::size_t r, std::size_t l) { return x[r * a.down + l]; }, [](std::size_t) {});
  else  // The processor does not foresee reads of a few numbers from each of many rows: they are fetched five blocks ahead.
    add([&](std::size_t r, std::size_t l) { return x[l * a.right + r]; },
        [&](std::size_t l) { __builtin_prefetch(x + l * a.right + 64); });
  store<R, C, T>(sums, c, i, columns);
}

/// Copies C registers of columns of b next to each other.
template <std::size_t C, class T>
inline void copy_columns(Strided<T> b, std::size_t inner, const Columns<C, T>& columns, T* to) {
  constexpr std::size_t n = width<T>;
  for (std::size_t s = 0; s < C; ++s, to += n) {
    std::size_t l = 0;
    if (b.right == 1)
      for (; l < inner; ++l) Batch<T>::load_unaligned(&b(l, columns.at(s))).store_unaligned(to + l * C * n);
    for (; l + n <= inner; l += n) transpose_tile(&b(l, columns.at(s)), b.right, to + l * C * n, C * n);
    for (; l < inner; ++l)
      for (std::size_t j = 0; j < n; ++j) to[l * C * n + j] = b(l, columns.at(s) + j);
  }
}

/// Calls f(columns) for each two registers of columns from `from` to `to`, which is `cols` or a multiple of them after `from`.
template <class T, class F>
[[gnu::always_inline]] inline void for_columns(std::size_t from, std::size_t to, std::size_t cols, F f) {
  for (std::size_t j = from; j < to; j += 2 * width<T>)
    if (cols - j > width<T>)
      f(Columns<2, T>(j, cols));
    else
      f(Columns<1, T>(j, cols));
}

/// c = beta c + alpha a b: a [rows, inner], b [inner, cols], with contiguous rows or columns; at least a register of columns.
template <class T>
inline void multiply_registers(Strided<T> a, Strided<T> b, Result<T> c, std::size_t rows, std::size_t inner, std::size_t cols) {
  constexpr std::size_t two = 2 * width<T>, cache = (1 << 19) / sizeof(T);  // half of a second-level cache
  // For many rows a copy takes no time; lines whose distance is a multiple of this many bytes compete for the same places of caches.
  const bool in_place = b.right == 1 && rows < 512 && b.down * sizeof(T) % 4096 != 0;
  // Of a left factor with contiguous columns, a block reads a part of a line for each inner index. The next block finds the rest of
  // 256 of them in the first-level cache.
  const std::size_t most = a.right == 1 ? 8192 : 256;
  thread_local std::vector<T> memory;
  for (std::size_t l = 0; l < inner; l += most, c.beta = 1) {
    const auto n = std::min(most, inner - l);
    const Strided<T> left{&a(0, l), a.down, a.right}, right{&b(l, 0), b.down, b.right};
    for (std::size_t from = 0, to; from < cols; from = to) {  // as many columns as stay in the cache
      to = std::min(cols, from + std::max(two, cache / n / two * two));
      if (!in_place) {
        memory.resize(std::max(memory.size(), (to - from + two) * n));
        for_columns<T>(from, to, cols, [&]<std::size_t C>(const Columns<C, T>& columns) {
          copy_columns<C, T>(right, n, columns, memory.data() + (columns.from - from) * n);
        });
      }
      const auto block = [&]<std::size_t R>(std::size_t i) {
        for_columns<T>(from, to, cols, [&]<std::size_t C>(const Columns<C, T>& columns) {
          const auto lines = in_place ? Lines<T>{&right(0, columns.at(0)), b.down, columns.last - columns.at(0)}
                                      : Lines<T>{memory.data() + (columns.from - from) * n, C * width<T>, (C - 1) * width<T>};
          multiply_block<R, C, T>(left, i, lines, n, c, columns);
        });
        return i + R;
      };
      std::size_t i = 0;
      while (i + block_rows<T> <= rows) i = block.template operator()<block_rows<T>>(i);
      while (i + 4 <= rows) i = block.template operator()<4>(i);
      while (i < rows) i = block.template operator()<1>(i);
    }
  }
}

/// How to compute a product: by BLAS, by `multiply_registers`, or by the same for the transpose, c' = b' a'.
enum class GemmPath { blas, direct, turned };

/// The fastest way, as measured with AVX-512 (tests/peers/causes.md, products in registers). BLAS copies both factors, which takes a
/// share of the time if there are few rows. But it fills registers whatever the size, and multiplies small ones without copies.
template <class T>
inline GemmPath fastest(const Strided<T>& b, std::size_t rows, std::size_t inner, std::size_t cols) {
  constexpr std::size_t n = width<T>, few = 64, large = 1 << 20;
  const auto fills = [](std::size_t columns, std::size_t sixteenths) {
    return columns >= n && 16 * columns >= sixteenths * ((columns + n - 1) / n * n);
  };
  // A factor exceeds the second-level cache and meets few rows or columns, or few products are added to a result that exceeds all
  // caches: the larger matrix is read once.
  const auto least = std::min(rows, cols), most = std::max(rows, cols);
  const bool one_large = inner < least ? inner <= few && rows * cols >= 8 * large : least <= few && inner * most >= large;
  if (one_large && fills(least, 12)) return rows < std::min(inner, cols) ? GemmPath::turned : GemmPath::direct;
  if (n * sizeof(T) < 64 || inner < few || rows * inner * cols < large) return GemmPath::blas;
  if (rows <= few && cols >= few / 2 && fills(rows, 15)) return GemmPath::turned;
  // Of longer lines a block would read a part. The columns of a right factor in columns are transposed.
  if (cols > 2 * few || !fills(cols, 15)) return GemmPath::blas;
  return b.right == 1 || (rows >= 48 && rows <= 160 && inner >= 2 * few) ? GemmPath::direct : GemmPath::blas;
}

}  // namespace hardgrad::kernels
