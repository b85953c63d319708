// Operations that move entries: gathers, concatenation, slices, bags of embeddings.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// Rows x[index[r]] -> [R', C]; the cotangent is scattered back. An index of -1 gives a row of zeros.
template <class T>
Var<T> gather_rows(Var<T> x, std::span<const int> index);
/// The same on vertically stacked blocks, without building the stack.
template <class T>
Var<T> gather_rows(std::span<const Var<T>> blocks, std::span<const int> index);
/// The blocks side by side: [R, C1], [R, C2], ... -> [R, C1 + C2 + ...].
template <class T>
Var<T> concat_columns(std::initializer_list<Var<T>> blocks);
/// Columns [from, from + count) of x.
template <class T>
Var<T> slice_columns(Var<T> x, std::size_t from, std::size_t count);
/// The matrices stacked vertically: T blocks [R, C] -> [T R, C].
template <class T>
Var<T> stack_rows(std::span<const Var<T>> blocks);
/// (0, x) for each entry of x [R, C], in row-major order: the logits of bits with log odds x -> [R C, 2].
template <class T>
Var<T> beside_zero(Var<T> x);
/// One entry from each row of a group of D consecutive rows of x [R D, S]: x[group[r] D + d, column[r D + d]] -> [R', D].
template <class T>
Var<T> pick_in_groups(Var<T> x, std::size_t D, std::span<const int> group, std::span<const int> column);
/// Their sums over each row's columns -> [R', 1], in double.
template <class T>
Var<T> sums_in_groups(Var<T> x, std::size_t D, std::span<const int> group, std::span<const int> column);
/// x[row[r], column[r]] -> [R', 1].
template <class T>
Var<T> pick(Var<T> x, std::span<const int> row, std::span<const int> column) {
  return pick_in_groups(x, 1, row, column);
}
/// Factors of the embeddings in a bag, as an index into few distinct rows. Empty: all ones.
template <class T>
struct BagWeights {
  MatrixView<const T> rows = {};    ///< [any, D]
  std::span<const int> index = {};  ///< [N W] the row for each token; ignored for tokens of -1
};
/// Sums of embeddings: out[n] = sum_w weights[n W + w] (.) table[tokens[n W + w]] -> [N, D]. tokens [N W]; -1 adds nothing.
template <class T>
Var<T> bag(Var<T> table, std::span<const int> tokens, std::size_t words, BagWeights<T> weights = {});

/// The same entries, in the same order, in rows of `cols`: x [R, C] -> [R C / cols, cols].
template <class T>
Var<T> reshape(Var<T> x, std::size_t cols);

}  // namespace hardgrad
