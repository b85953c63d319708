// Which rows of a run are, so far, the same: a network need not work out a state twice.
//
// What a network knows before a choice depends on its example and on what was chosen before. Rows that share both share one
// state; rows of relaxed choices have their own; a row that is finished has none.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/choice/episode.hpp"
#include "core/models/replicates.hpp"

namespace hardgrad {

/// The states of the rows that ask, [R] rows and [N] states in the rows' order.
struct Histories {
  std::vector<int> of_row;   ///< [R] the row's state; -1: it needs none
  std::vector<int> row;      ///< [N] the first row in this state
  std::vector<int> example;  ///< [N] its example among the distinct ones, non-decreasing
  std::vector<int> parent;   ///< [N] the state it goes on from, among those before
  std::vector<int> option;   ///< [N] what it chose there; empty if that was relaxed, or if nothing was chosen

  std::size_t size() const { return row.size(); }

  /// Before the first choice: one state per distinct example.
  static Histories root(const Distinct& distinct) {
    Histories h;
    h.of_row = distinct.index;
    h.row = distinct.first;
    h.example.resize(h.row.size());
    std::iota(h.example.begin(), h.example.end(), 0);
    h.parent = h.example;
    return h;
  }

  /// One state for all rows: nothing is known of their examples yet.
  static Histories one(std::size_t rows) {
    return {.of_row = std::vector<int>(rows, 0), .row = {0}, .example = {0}, .parent = {0}, .option = {}};
  }

  /// After these rows were answered. `options`: more than any option.
  template <class T>
  Histories after(const Choice<T>& choice, std::size_t options, const Distinct& distinct) const {
    const std::size_t rows = choice.rows->size();
    Histories next{.of_row = std::vector<int>(rows, -1), .row = {}, .example = {}, .parent = {}, .option = {}};
    for (auto* list : {&next.row, &next.example, &next.parent, &next.option}) list->resize(rows);
    struct Made {
      int example = -1, state = -1;
    };
    const bool options_only = choice.hard() && !choice.value;  // numbers are hardly ever alike
    const bool share = options_only && !choice.apart;
    std::vector<Made> made(share ? size() * options : 0);
    int states = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const int from = of_row[choice.rows->parent[r]], whose = distinct.index[choice.rows->example[r]];
      if (from < 0) continue;
      const int option = options_only ? choice.option[r] : 0;
      auto known = share ? &made[from * options + option] : nullptr;
      if (known && known->example == whose) {
        next.of_row[r] = known->state;
        continue;
      }
      if (known) *known = {whose, states};
      next.row[states] = static_cast<int>(r);
      next.example[states] = whose;
      next.parent[states] = from;
      next.option[states] = option;
      next.of_row[r] = states++;
    }
    for (auto* list : {&next.row, &next.example, &next.parent, &next.option}) list->resize(states);
    if (!options_only) next.option.clear();
    return next;
  }

  /// The same states, a step later without a choice between.
  Histories again() const {
    auto next = *this;
    std::iota(next.parent.begin(), next.parent.end(), 0);
    next.option.clear();
    return next;
  }

  /// Only the states whose examples `goes_on(example)`; the rows of the others have none.
  template <class F>
  Histories only(F goes_on) && {
    if (std::all_of(example.begin(), example.end(), goes_on)) return std::move(*this);
    Histories left;
    for (auto* list : {&left.row, &left.example, &left.parent, &left.option}) list->reserve(size());
    std::vector<int> place(size(), -1);
    for (std::size_t n = 0; n < size(); ++n) {
      if (!goes_on(example[n])) continue;
      place[n] = static_cast<int>(left.size());
      left.row.push_back(row[n]);
      left.example.push_back(example[n]);
      left.parent.push_back(parent[n]);
      if (!option.empty()) left.option.push_back(option[n]);
    }
    left.of_row = std::move(of_row);
    for (int& state : left.of_row)
      if (state >= 0) state = place[state];
    return left;
  }

  /// Values of the states [N, C] on the rows [R, C]; zeros where there is none.
  template <class T>
  Var<T> on_rows(Var<T> x) const {
    return is_range(of_row, x.rows()) ? x : gather_rows(x, std::span<const int>(of_row));
  }
  /// Values of the rows [R, C] on the states [N, C].
  template <class T>
  Var<T> on_states(Var<T> x) const {
    return is_range(row, x.rows()) ? x : gather_rows(x, std::span<const int>(row));
  }
  /// Sums of the rows' numbers [R] over their states [N]; of none, none.
  std::vector<double> summed(const std::vector<double>& of_rows) const {
    std::vector<double> sums(of_rows.empty() ? 0 : size());
    for (std::size_t r = 0; r < of_rows.size(); ++r)
      if (of_row[r] >= 0) sums[of_row[r]] += of_rows[r];
    return sums;
  }
  /// Labels of the states [N] on the rows [R]; -1 where there is none.
  std::vector<int> labels_on_rows(std::span<const int> label) const {
    std::vector<int> all(of_row.size(), -1);
    for (std::size_t r = 0; r < all.size(); ++r)
      if (of_row[r] >= 0) all[r] = label[of_row[r]];
    return all;
  }
  /// Among the rows of the examples' items: the ones chosen last [N].
  std::vector<int> chosen(const Items& items) const {
    std::vector<int> index(size());
    for (std::size_t n = 0; n < index.size(); ++n) index[n] = items.row(example[n], option[n]);
    return index;
  }
  /// What the states take of values [items, C] by weights [R, S] of their rows: [N, C].
  template <class T>
  Var<T> mixed(Var<T> weights, Var<T> values, const Items& items) const {
    return mix(on_states(weights), values, std::span<const int>(example), items);
  }
  /// `parent` as an index of `gather_sum` into `before` states: empty if every state goes on as it stands.
  std::span<const int> moved(std::size_t before) const {
    if (is_range(parent, before)) return {};
    return parent;
  }

 private:
  static bool is_range(const std::vector<int>& index, std::size_t count) {
    if (index.size() != count) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (index[i] != static_cast<int>(i)) return false;
    return true;
  }
};

}  // namespace hardgrad
