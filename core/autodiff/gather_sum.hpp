// Sums of gathered rows, without intermediate matrices.
#pragma once

#include <initializer_list>
#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// One addend of `gather_sum`: the rows index[r] of x. An index of -1 adds nothing; an empty index is the identity.
template <class T>
struct Part {
  Var<T> x;                      ///< [N, C]; an empty handle adds nothing
  std::span<const int> index{};  ///< [R]
};

/// out[r] = sum_j x_j[index_j[r]] -> [R, C], for one to four parts; `rectified`: max(0, sum).
template <class T>
Var<T> gather_sum(std::size_t rows, std::initializer_list<Part<T>> parts, bool rectified = false);

}  // namespace hardgrad
