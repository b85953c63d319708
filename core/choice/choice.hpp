// Rows, and an answer to a question: options, sets of options, weights over options, or real numbers.
#pragma once

#include <memory>
#include <numeric>
#include <variant>
#include <vector>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

// Rows are branches. A model runs once on R rows. A choice gives R' new rows, and each continues one of the R rows.

struct Rows;
using RowsPtr = std::shared_ptr<const Rows>;

/// The rows at one point of a run, and the choice that made them. Rows of one example are contiguous.
struct Rows {
  std::vector<int> example;  ///< [R] position of the row's example in the batch, non-decreasing
  std::vector<int> replica;  ///< [R] ordinal of the row among its example's rows
  std::vector<int> parent;   ///< [R] the row of `origin` that the row continues; empty for the root
  RowsPtr origin;            ///< the rows that chose; null for the root
  int step = -1;             ///< index of the choice that made these rows; -1 for the root
  int copies = 1;            ///< rows per example if all examples have equally many, otherwise 0

  std::size_t size() const { return example.size(); }
  bool is_root() const { return !origin; }
  /// True if choice `step` made these rows or an ancestor of them.
  bool descends_from(int step) const {
    for (auto* rows = this; rows; rows = rows->origin.get())
      if (rows->step == step) return true;
    return false;
  }

  /// One row per example.
  static RowsPtr root(int examples) {
    auto rows = std::make_shared<Rows>();
    rows->example.resize(examples);
    std::iota(rows->example.begin(), rows->example.end(), 0);
    rows->replica.assign(examples, 0);
    return rows;
  }
  /// The rows after choice `step` at `origin`; `parent` [R'] must keep the examples contiguous.
  static RowsPtr after(RowsPtr origin, std::vector<int> parent, int step);
};

// An answer to a question: options, sets of options, weights over options, or real numbers.

/// Hard options.
struct ChosenOptions {
  std::vector<int> option;  ///< [R' D picks] ascending in each choice; -1: none left to pick
  int subset_size = 1;      ///< options per choice; 1 unless the choices are subsets
};

/// Weights over the options.
template <class T>
struct Relaxed {
  std::vector<int> option;  ///< [R' D picks] the hard options that the weights stand for (0 in a relaxed row); empty: none
  Var<T> weights;           ///< [R' D, S] weights summing to the picks of each choice
  int subset_size = 1;
};

/// Real numbers.
template <class T>
struct ChosenNumbers {
  Var<T> value;  ///< [R', D] constant, or differentiable in the distribution's parameters
  /// For the nodes of a quadrature, log(weight / density) of each node, so that path probabilities sum to 1. [R', 1], or
  /// [R', D] if side by side.
  Var<T> log_volume = {};
  bool expected = false;  ///< they are the mean: nothing was drawn
};

/// An answer: for each column of each new row a hard option (or several), relaxed weights over all options, or a real number.
template <class T>
struct Choice {
  RowsPtr rows;  ///< the rows after the choice, [R']
  std::variant<ChosenOptions, Relaxed<T>, ChosenNumbers<T>> answer = {};
  bool unshared = false;  ///< rows with equal choices must not share states: see Episode::use_independent_rows
  /// The columns answer side by side: each column is enumerated by itself, and a row is not a joint set of choices. Only where
  /// each column has separate costs and no later question continues from these rows.
  bool side_by_side = false;
  /// [R' D] side by side, true where a column has fewer answers than rows; empty if there is no such column.
  std::vector<char> padding_mask = {};
  /// [R' D, d] the codes that the model continues with in place of those of the options (codes_of), if a handler sets them.
  Var<T> code = {};

  /// Null if the choices are options.
  const ChosenNumbers<T>* numbers() const { return std::get_if<ChosenNumbers<T>>(&answer); }
  /// Null if the choices are hard options or numbers.
  const Relaxed<T>* relaxed() const { return std::get_if<Relaxed<T>>(&answer); }
  /// True if every choice is an option, a subset or a number, not a mixture.
  bool hard() const { return !relaxed(); }
  /// The chosen numbers. Bug if the choices are options.
  Var<T> value() const { return given<ChosenNumbers<T>>("a choice of options has no numbers").value; }
  /// The relaxed weights. Bug if the choices are hard options or numbers.
  Var<T> weights() const { return given<Relaxed<T>>("a hard choice has no weights").weights; }
  /// The options of a hard or a relaxed choice [R' D]. Bug if the choices are subsets or numbers.
  const std::vector<int>& option() const {
    if (subset_size() != 1) throw Bug("one option is needed, but the choices are subsets");
    return picked();
  }
  /// The same, of subsets, too [R' D picks].
  const std::vector<int>& picked() const {
    return relaxed() ? relaxed()->option : given<ChosenOptions>("a choice of numbers has no options").option;
  }
  /// Options per choice.
  int subset_size() const {
    return relaxed() ? relaxed()->subset_size : numbers() ? 1 : std::get<ChosenOptions>(answer).subset_size;
  }
  /// True if the choice has a log probability (for numbers, a density).
  bool has_probability() const { return numbers() ? !numbers()->expected : !picked().empty(); }
  /// The choice as weights [R' D, S]: the relaxed weights, or if hard a constant row per choice, 1 at its option or options.
  Var<T> one_hot(Tape<T>& tape, std::size_t options) const {
    if (relaxed()) return weights();
    const auto ones = tape.constant(picked().size() / static_cast<std::size_t>(subset_size()), options);
    put_ones(tape.mutable_value(ones));
    return ones;
  }
  /// Of hard choices: 1 at the chosen options of each row of `weights` [R, S], which are 0 before.
  void put_ones(MatrixView<T> weights) const {
    const auto& chosen = picked();
    const auto each = static_cast<std::size_t>(subset_size());
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] >= 0) weights(i / each, static_cast<std::size_t>(chosen[i])) = 1;
  }

 private:
  template <class Answer>
  const Answer& given(const char* otherwise) const {
    if (const auto* held = std::get_if<Answer>(&answer)) return *held;
    throw Bug(otherwise);
  }
};

// Codes: options that are points of a space. A choice takes one near its own point (Site::codes).

/// The codes of an answer [R' D, d]: those that the handler has set, or those of its options in the table [S, d], or, if it is
/// relaxed, their mixture.
template <class T>
Var<T> codes_of(const Choice<T>& choice, Var<T> table);

/// The codes [R, d], with the gradient copied to the points [R, d]: point + detach(code - point).
template <class T>
Var<T> copied_gradient(Var<T> point, Var<T> code);
/// The codes [R, d] as rotated and scaled points [R, d], detach(|code| / |point| A) point, in which A is the rotation of their
/// plane from the point's direction to the code's (Fifty et al. 2024, sec. 4.2). A row whose point or code is 0, or whose
/// directions are opposite, has no such rotation; its gradient is copied.
template <class T>
Var<T> rotated_gradient(Var<T> point, Var<T> code);

}  // namespace hardgrad
