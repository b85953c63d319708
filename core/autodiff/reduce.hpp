// Sums: of entries, rows and groups of rows, and of gathered rows, without intermediate matrices.
#pragma once

#include <initializer_list>
#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// sum_i weight[i] x[i] over all entries -> [1, 1]; accumulated in double.
template <class T>
Var<T> weighted_sum(Var<T> x, std::span<const double> weight);
/// The same with weights of type T, in memory of the tape (scratch).
template <class T>
Var<T> inner_product(Var<T> x, std::span<const T> weight);
/// weight * sum of all entries -> [1, 1]; accumulated in double.
template <class T>
Var<T> sum(Var<T> x, double weight = 1);
/// Row sums -> [R, 1].
template <class T>
Var<T> row_sums(Var<T> x);
/// Sums of a row's other entries, y[r, j] = sum_{i != j} x[r, i]; no difference is taken, so that nothing cancels.
template <class T>
Var<T> sums_of_others(Var<T> x);
/// log sum exp of the entries of x [R, 1] in each group -> [groups, 1]. group [R] is non-decreasing; every group has
/// a row. Accumulated in double.
template <class T>
Var<T> segment_logsumexp(Var<T> x, std::span<const int> group, std::size_t groups);

/// Sums of the rows of x [R, C] in each group -> [groups, C]. group [R]; a group without rows has 0.
template <class T>
Var<T> segment_sums(Var<T> x, std::span<const int> group, std::size_t groups);

/// Sums of every `count` consecutive rows of x [R count, 1] -> [R, 1].
template <class T>
Var<T> group_sums(Var<T> x, std::size_t count);

/// One addend of `gather_sum`: the rows index[r] of x. An index of -1 adds nothing; an empty index is the identity.
template <class T>
struct Gathered {
  Var<T> x;                      ///< [N, C]; an empty handle adds nothing
  std::span<const int> index{};  ///< [R]
};

/// out[r] = sum_j x_j[index_j[r]] -> [R, C], for one to four parts; `rectified`: max(0, sum).
template <class T>
Var<T> gather_sum(std::size_t rows, std::initializer_list<Gathered<T>> parts, bool rectified = false);

}  // namespace hardgrad
