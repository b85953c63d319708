// Parameters: named arrays that a network learns, and sets of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "core/support/array.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

template <class T>
struct Parameter {
  std::string name;      ///< dotted, e.g. "decoder.lstm.weight"
  Array<T> value;        ///< rank 1 ([n], read as [1, n] by the tape) or rank 2
  std::size_t offset{};  ///< offset of its first entry in the set's flat gradient

  std::size_t rows() const { return value.dimension() == 2 ? value.shape()[0] : 1; }
  std::size_t cols() const { return value.shape().back(); }
  /// The part of the name before the first dot; variance is reported by group.
  std::string group() const { return name.substr(0, name.find('.')); }
};

/// An ordered set of parameters with stable addresses. Its gradient is one flat vector of `size()` entries.
template <class T>
class ParameterSet {
 public:
  Parameter<T>& add(std::string name, std::vector<std::size_t> shape) {
    if (find(name)) throw Bug("parameter " + name + " added twice");
    parameters_.push_back({std::move(name), zeros<T>(std::move(shape)), size_});
    size_ += parameters_.back().value.size();
    return parameters_.back();
  }
  Parameter<T>* find(const std::string& name) {
    auto it = std::find_if(begin(), end(), [&](const auto& p) { return p.name == name; });
    return it == end() ? nullptr : &*it;
  }
  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  /// Number of entries of all parameters.
  std::size_t size() const { return size_; }
  bool empty() const { return parameters_.empty(); }

 private:
  std::deque<Parameter<T>> parameters_;
  std::size_t size_ = 0;
};

}  // namespace hardgrad
