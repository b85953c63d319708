// A view of a matrix that another owner holds: row-major and contiguous.
#pragma once

#include <cstddef>
#include <span>

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

}  // namespace hardgrad
