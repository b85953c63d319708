// Arrays that own their numbers, and views that do not. All are row-major and contiguous.
#pragma once

#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

namespace hardgrad {

/// An array of any rank that owns its numbers.
template <class T>
struct Array {
  std::vector<std::size_t> shape;
  std::vector<T> data;

  Array() = default;
  explicit Array(std::vector<std::size_t> dimensions, T fill = T{}) : shape(std::move(dimensions)), data(count(shape), fill) {}
  Array(std::vector<std::size_t> dimensions, std::vector<T> values) : shape(std::move(dimensions)), data(std::move(values)) {}

  std::size_t size() const { return data.size(); }
  /// Length of axis `axis`; 1 beyond the rank, so that a vector can be read as a matrix with one column.
  std::size_t extent(std::size_t axis) const { return axis < shape.size() ? shape[axis] : 1; }
  /// Number of elements per index of the first axis.
  std::size_t stride() const { return shape.empty() || shape[0] == 0 ? 0 : data.size() / shape[0]; }
  std::span<T> row(std::size_t i) { return {data.data() + i * stride(), stride()}; }
  std::span<const T> row(std::size_t i) const { return {data.data() + i * stride(), stride()}; }

  static std::size_t count(const std::vector<std::size_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  }
};

/// True if every number is n. Does not stop early, so that the loop is vectorised.
inline bool all_are(std::span<const int> numbers, std::size_t n) {
  bool all = true;
  for (int number : numbers) all &= number == static_cast<int>(n);
  return all;
}

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

}  // namespace hardgrad
