// Shape checks of the operations: a violation is a bug of this project; the message names the operation and the shapes.
#pragma once

#include <initializer_list>
#include <string>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

template <class T>
[[noreturn]] void shape_bug(const char* operation, std::initializer_list<Var<T>> inputs) {
  std::string message = std::string(operation) + ": shapes do not match:";
  for (auto x : inputs) message += x ? " [" + std::to_string(x.rows()) + ", " + std::to_string(x.cols()) + "]" : " []";
  throw Bug(message);
}

template <class T>
inline void require_shapes(bool fit, const char* operation, std::initializer_list<Var<T>> inputs) {
  if (!fit) [[unlikely]]
    shape_bug(operation, inputs);
}

/// Requires every index to be in [least, end).
inline void require_indices(const char* operation, std::span<const int> index, int least, std::size_t end) {
  int lowest = least, highest = -1;  // no early exit, so that the loop is vectorised
  for (int i : index) {
    lowest = i < lowest ? i : lowest;
    highest = i > highest ? i : highest;
  }
  if (lowest >= least && (highest < 0 || static_cast<std::size_t>(highest) < end)) [[likely]]
    return;
  for (int i : index)
    if (i < least || (i >= 0 && static_cast<std::size_t>(i) >= end)) [[unlikely]]
      throw Bug(std::string(operation) + ": index " + std::to_string(i) + " outside [" + std::to_string(least) + ", " +
                std::to_string(end) + ")");
}

template <class T>
inline bool same_shape(Var<T> a, Var<T> b) {
  return a.rows() == b.rows() && a.cols() == b.cols();
}

}  // namespace hardgrad
