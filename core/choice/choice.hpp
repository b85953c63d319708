// An answer to a question: options, weights over options, or real numbers.
#pragma once

#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/choice/rows.hpp"

namespace hardgrad {

/// An answer: for each column of each new row a hard option, relaxed weights over all options, or a real number.
template <class T>
struct Choice {
  RowsPtr rows;  ///< the rows after the choice, [R']
  /// [R' D] the chosen options (0 in a relaxed row). Empty if all rows are relaxed or the choices are numbers.
  std::vector<int> option = {};
  Var<T> weights = {};  ///< [R' D, S] weights summing to 1 per cell, if relaxed
  /// [R', D] the chosen numbers, for distributions over numbers. Constant, or differentiable in the distribution's parameters.
  Var<T> value = {};
  /// For the nodes of a quadrature, log(weight / density) of each node, so that path probabilities sum to 1. [R', 1], or
  /// [R', D] if side by side.
  Var<T> log_volume = {};
  bool expected = false;  ///< the numbers are the mean: nothing was drawn
  bool apart = false;     ///< rows with equal choices must not share states: see Episode::keep_apart
  /// The columns answer side by side: each column is enumerated by itself, and a row is not a joint set of choices. Only where
  /// each column has separate costs and no later question continues from these rows.
  bool side_by_side = false;
  /// [R' D] side by side, true where a column has fewer answers than rows; empty if there is no such column.
  std::vector<char> spare = {};

  /// True if every choice is one option or number, not a mixture.
  bool hard() const { return !weights; }
  /// True if the choice has a log probability (for numbers, a density).
  bool has_probability() const { return !option.empty() || (value && !expected); }
  /// The choice as weights [R' D, S]: the relaxed weights, or a constant one-hot row per cell if hard.
  Var<T> one_hot(Tape<T>& tape, std::size_t options) const {
    if (weights) return weights;
    if (option.empty()) throw Bug("a choice of numbers has no weights over options");
    auto ones = tape.constant(option.size(), options);
    for (std::size_t r = 0; r < option.size(); ++r) tape.mutable_value(ones)(r, option[r]) = 1;
    return ones;
  }
};

}  // namespace hardgrad
