// Sums of listed columns of a matrix, and the gradient. A tile of the matrix is transposed at a time, so that whole registers are
// added, and the matrix is read or written once.
#pragma once

#include <algorithm>
#include <span>

#include "core/kernels/transpose.hpp"

namespace hardgrad::kernels {

/// For every column of a matrix the rows of the result to which it is added.
struct ColumnLists {
  std::span<const int> first;  ///< [I + 1] where the rows of each column begin
  std::span<const int> row;
  std::size_t columns() const { return first.size() - 1; }
};

/// Rows and columns of a tile: a cache line.
template <class T>
inline constexpr std::size_t tile_side = 64 / sizeof(T);

/// turned[j][i] = x[i][j], i < rows, j < cols; rows of x begin `stride` numbers after one another.
template <class T>
inline void turn(const T* x, std::size_t stride, std::size_t rows, std::size_t cols, T* turned, std::size_t turned_stride) {
  constexpr std::size_t n = width<T>, side = tile_side<T>;
  if (rows == side && cols == side) {
    for (std::size_t i = 0; i < side; i += n)
      for (std::size_t j = 0; j < side; j += n)
        transpose_tile(x + i * stride + j, stride, turned + j * turned_stride + i, turned_stride);
    return;
  }
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) turned[j * turned_stride + i] = x[i * stride + j];
}

/// to[j] += x[j], j < tile_side
template <class T>
inline void add_line(const T* x, T* to) {
  for (std::size_t j = 0; j < tile_side<T>; j += width<T>)
    (Batch<T>::load_unaligned(to + j) + Batch<T>::load_unaligned(x + j)).store_unaligned(to + j);
}

/// to[j] = sum over the given rows of lines[row][j], j < tile_side
template <class T>
inline void sum_lines(const T* lines, const int* row, const int* end, T* to) {
  constexpr std::size_t registers = tile_side<T> / width<T>;
  Batch<T> sums[registers];
  for (auto& sum : sums) sum = Batch<T>(T{0});
  for (; row != end; ++row)
    for (std::size_t i = 0; i < registers; ++i)
      sums[i] += Batch<T>::load_unaligned(lines + static_cast<std::size_t>(*row) * tile_side<T> + i * width<T>);
  for (std::size_t i = 0; i < registers; ++i) sums[i].store_unaligned(to + i * width<T>);
}

/// Calls f(from, cols) for the tiles of columns; `any`: only where a column is listed.
template <class T, class F>
inline void for_column_tiles(const ColumnLists& lists, bool any, F&& f) {
  for (std::size_t from = 0; from < lists.columns(); from += tile_side<T>) {
    const std::size_t cols = std::min(tile_side<T>, lists.columns() - from);
    if (!any || lists.first[from] != lists.first[from + cols]) f(from, cols);
  }
}

/// y[r] = start + sum_k w[:, k] over the columns k that list r -> [R, O]; w [O, I]; start [O], or null for zeros. `lines`
/// [R tile_side] is workspace.
template <class T>
inline void sum_columns(const ColumnLists& lists, const T* w, std::size_t O, const T* start, std::size_t R, T* y, T* lines) {
  constexpr std::size_t side = tile_side<T>;
  alignas(64) T tile[side * side] = {};
  for (std::size_t o = 0; o < O; o += side) {
    const std::size_t n = std::min(side, O - o);
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t j = 0; j < side; ++j) lines[r * side + j] = start && j < n ? start[o + j] : T{0};
    for_column_tiles<T>(lists, true, [&](std::size_t from, std::size_t cols) {
      turn(w + o * lists.columns() + from, lists.columns(), n, cols, tile, side);
      for (std::size_t k = 0; k < cols; ++k)
        for (int i = lists.first[from + k]; i < lists.first[from + k + 1]; ++i)
          add_line(tile + k * side, lines + static_cast<std::size_t>(lists.row[i]) * side);
    });
    for (std::size_t r = 0; r < R; ++r) std::copy_n(lines + r * side, n, y + r * O + o);
  }
}

/// gw[:, k] (+)= sum_r g[r] over the rows r of column k; g [R, O], gw [O, I]. `store`: writes gw, else adds.
template <class T>
inline void scatter_columns(const ColumnLists& lists, const T* g, std::size_t R, std::size_t O, T* gw, bool store, T* lines) {
  constexpr std::size_t side = tile_side<T>;
  alignas(64) T tile[side * side], turned[side * side];
  for (std::size_t o = 0; o < O; o += side) {
    const std::size_t n = std::min(side, O - o);
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t j = 0; j < side; ++j) lines[r * side + j] = j < n ? g[r * O + o + j] : T{0};
    for_column_tiles<T>(lists, !store, [&](std::size_t from, std::size_t cols) {
      for (std::size_t k = 0; k < side; ++k) {
        const int begin = k < cols ? lists.first[from + k] : 0, end = k < cols ? lists.first[from + k + 1] : 0;
        sum_lines(lines, lists.row.data() + begin, lists.row.data() + end, tile + k * side);
      }
      T* to = gw + o * lists.columns() + from;
      if (store && n == side && cols == side) return turn(tile, side, side, side, to, lists.columns());
      turn(tile, side, side, side, turned, side);
      for (std::size_t j = 0; j < n; ++j, to += lists.columns())
        for (std::size_t k = 0; k < cols; ++k) to[k] = turned[j * side + k] + (store ? T{0} : to[k]);
    });
  }
}

}  // namespace hardgrad::kernels
