// An answer to a question: options, weights over options, or numbers.
#pragma once

#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/choice/rows.hpp"

namespace hardgrad {

/// An answer: one hard option per column of each new row, or relaxed weights over all options, or numbers.
template <class T>
struct Choice {
  RowsPtr rows;  ///< the rows that go on, [R']
  std::vector<int> option =
      {};               ///< [R' D] the chosen option (0 where a row is relaxed); empty if all rows are relaxed, and of numbers
  Var<T> weights = {};  ///< [R' D, S] weights summing to 1 per cell, if relaxed
  /// [R', D] the numbers chosen, where they are no categories. Constant, or differentiable in the distribution's parameters.
  Var<T> value = {};
  /// [R', 1], or [R', D] side by side, of nodes of a quadrature: log of a node's weight over its density, so that path
  /// probabilities sum to 1.
  Var<T> log_volume = {};
  bool expected = false;  ///< the numbers are the mean: nothing was drawn
  bool apart = false;     ///< rows that chose alike are not to share their states: see Episode::keep_apart
  /// The columns answer side by side, each as if it were alone: a row is no set of choices. Only where each column's costs are
  /// its own, and nothing goes on from these rows.
  bool side_by_side = false;
  std::vector<char> spare = {};  ///< [R' D] of columns side by side: true where a column has no answer left; empty if all have

  /// One definite answer, no mixture.
  bool hard() const { return !weights; }
  /// It has a log probability (of numbers, a density).
  bool has_probability() const { return !option.empty() || (value && !expected); }
  /// The choice as weights [R' D, S] whichever it is: constant ones and zeros if hard.
  Var<T> one_hot(Tape<T>& tape, std::size_t options) const {
    if (weights) return weights;
    if (option.empty()) throw Bug("a choice of numbers is no choice among options");
    auto ones = tape.constant(option.size(), options);
    for (std::size_t r = 0; r < option.size(); ++r) tape.mutable_value(ones)(r, option[r]) = 1;
    return ones;
  }
};

}  // namespace hardgrad
