// Views of numbers that another owner holds: a matrix, row-major and contiguous, and how many options each row's subset has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace hardgrad {

/// A non-owning view of a matrix [rows, cols].
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::size_t rows = 0, cols = 0;

  T* row(std::size_t i) const { return data + i * cols; }
  T& operator()(std::size_t i, std::size_t j) const { return data[i * cols + j]; }
  std::size_t size() const { return rows * cols; }
  std::span<T> span() const { return {data, size()}; }
  operator MatrixView<const T>() const { return {data, rows, cols}; }
};

/// True if every number is n. Does not stop early, so that the loop is vectorised.
inline bool all_are(std::span<const int> numbers, std::size_t n) {
  bool all = true;
  for (int number : numbers) all &= number == static_cast<int>(n);
  return all;
}

/// k of each row: the same for all, or by row. A view.
struct SubsetSizes {
  SubsetSizes(int k) : same(k) {}  // NOLINT: a number stands for itself
  SubsetSizes(std::span<const int> k) : of_row(k) {}
  SubsetSizes(const std::vector<int>& k) : of_row(k) {}
  int operator[](std::size_t row) const { return of_row.empty() ? same : of_row[row]; }

  int same = 0;
  std::span<const int> of_row = {};  ///< [R]; empty: `same`
};

}  // namespace hardgrad
