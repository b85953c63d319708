// Arrays that own their numbers: xtensor's, row-major, with vectors for numbers and shape. A file's column becomes an array, and an
// array a column, without a copy, and a new array is 0 everywhere, not uninitialised as xt::xarray<T> is.
//
//   Array<double> x = zeros<double>({B, 3});
//   x(b, 1) = 2;  Array<double> mean = xt::mean(x, {0});  row_of(x, b)[1] = 3;
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#if __has_include(<xtensor/containers/xarray.hpp>)  // from 0.26 on
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>
#endif

#include "core/support/views.hpp"

namespace hardgrad {

using Shape = std::vector<std::size_t>;
/// An array of any rank. `Array<T>()` is one number without axes, as in NumPy; one without numbers is `zeros<T>({0})`.
template <class T>
using Array = xt::xarray_container<std::vector<T>, xt::layout_type::row_major, Shape>;

// By name, since Array<int>({2, 3}) has the numbers 2 and 3.
template <class T>
Array<T> full(const Shape& shape, T value) {
  return Array<T>(shape, value);
}
template <class T>
Array<T> zeros(const Shape& shape) {
  return full(shape, T{});
}
/// The values in this shape.
template <class T>
Array<T> shaped(const Shape& shape, std::vector<T> values) {
  return xt::adapt(std::move(values), shape);
}

/// Length of axis `axis`; 1 beyond the rank, so that a vector can be read as a matrix with one column.
template <class T>
std::size_t extent(const Array<T>& x, std::size_t axis) {
  return axis < x.dimension() ? x.shape()[axis] : 1;
}
/// Number of elements per index of the first axis.
template <class T>
std::size_t row_size(const Array<T>& x) {
  return x.dimension() == 0 || x.shape()[0] == 0 ? 0 : x.size() / x.shape()[0];
}
template <class T>
std::span<T> row_of(Array<T>& x, std::size_t i) {
  return {x.data() + i * row_size(x), row_size(x)};
}
template <class T>
std::span<const T> row_of(const Array<T>& x, std::size_t i) {
  return {x.data() + i * row_size(x), row_size(x)};
}

/// x += terms (an expression with one axis of the same length) without a copy. xtensor's += of an adaptor makes a new array, and g++ 14
/// warns falsely of its shape's bounds.
template <class Terms>
void add_in_place(std::vector<double>& x, const Terms& terms) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += terms(i);
}

/// xtensor's view of the same numbers.
template <class T>
auto as_array(MatrixView<T> x) {
  return xt::adapt(x.data, x.size(), xt::no_ownership(), std::array{x.rows, x.cols});
}
/// The same numbers as a matrix; a vector is one column.
template <class T>
MatrixView<T> as_matrix(Array<T>& x) {
  return {x.data(), extent(x, 0), row_size(x)};
}
template <class T>
MatrixView<const T> as_matrix(const Array<T>& x) {
  return {x.data(), extent(x, 0), row_size(x)};
}

}  // namespace hardgrad
