// Products with rows of few ones, such as choices among many options: columns of the matrix are added.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// A matrix [R, I] of zeros and ones by the places of its ones, `count` in each row, all different.
struct MultiHot {
  std::span<const int> places;  ///< [R count] columns; -1: none
  std::size_t count = 1;
};

/// x W' + b: W [O, I], b [1, O] or empty -> [R, O]. x is constant.
template <class T>
Var<T> linear(const MultiHot& x, Var<T> weight, Var<T> bias = {});

}  // namespace hardgrad
