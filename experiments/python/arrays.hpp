// NumPy arrays.
#pragma once

#include <pybind11/numpy.h>

#include <algorithm>
#include <vector>

namespace hardgrad::python {

template <class T>
using Numbers = pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>;

/// A new array with the given shape.
template <class To, class From>
pybind11::array_t<To> array_of(const From* numbers, std::vector<pybind11::ssize_t> shape) {
  pybind11::array_t<To> array(std::move(shape));
  std::copy_n(numbers, array.size(), array.mutable_data());
  return array;
}
template <class To, class From>
pybind11::array_t<To> array_of(const std::vector<From>& numbers, std::vector<pybind11::ssize_t> shape) {
  return array_of<To>(numbers.data(), std::move(shape));
}

}  // namespace hardgrad::python
