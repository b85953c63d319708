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
#include "core/models/parts/replicates.hpp"

namespace hardgrad {

/// The states of the rows that ask, [R] rows and [N] states in the rows' order.
struct Histories {
  std::vector<int> of_row;   ///< [R] the row's state; -1: it needs none
  std::vector<int> row;      ///< [N] the first row in this state
  std::vector<int> example;  ///< [N] its example among the distinct ones, non-decreasing
  std::vector<int> parent;   ///< [N] the state it goes on from, among those before
  std::vector<int> option;   ///< [N D] what it chose there, in D columns; empty if that was relaxed, or if nothing was chosen

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
    const std::size_t rows = choice.rows->size(), columns = rows == 0 ? 0 : choice.option.size() / rows;
    std::vector<int> whose(rows);
    Histories next;
    next.of_row.resize(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      next.of_row[r] = of_row[choice.rows->parent[r]];
      whose[r] = distinct.index[choice.rows->example[r]];
    }
    auto states = size();
    if (columns > 0 && choice.hard() && !choice.apart)
      for (std::size_t d = 0; d < columns; ++d)
        states = part(next.of_row, states, whose, options, [&](std::size_t r) { return choice.option[r * columns + d]; });
    else
      states = count(next.of_row);
    for (auto* list : {&next.row, &next.example, &next.parent}) list->reserve(states);
    if (choice.hard()) next.option.reserve(states * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      if (next.of_row[r] != static_cast<int>(next.size())) continue;  // none, or not the first row in its state
      next.row.push_back(static_cast<int>(r));
      next.example.push_back(whose[r]);
      next.parent.push_back(of_row[choice.rows->parent[r]]);
      const auto chosen = choice.option.begin() + static_cast<std::ptrdiff_t>(r * columns);
      if (choice.hard()) next.option.insert(next.option.end(), chosen, chosen + static_cast<std::ptrdiff_t>(columns));
    }
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
    const std::size_t columns = option.size() / size();
    for (auto* list : {&left.row, &left.example, &left.parent}) list->reserve(size());
    left.option.reserve(option.size());
    std::vector<int> place(size(), -1);
    for (std::size_t n = 0; n < size(); ++n) {
      if (!goes_on(example[n])) continue;
      place[n] = static_cast<int>(left.size());
      left.row.push_back(row[n]);
      left.example.push_back(example[n]);
      left.parent.push_back(parent[n]);
      for (std::size_t d = 0; d < columns; ++d) left.option.push_back(option[n * columns + d]);
    }
    left.of_row = std::move(of_row);
    for (int& state : left.of_row)
      if (state >= 0) state = place[state];
    return left;
  }

  /// Values of the states [N D, C] on the rows [R D, C], D lines each; zeros where there is none.
  template <class T>
  Var<T> on_rows(Var<T> x, std::size_t lines = 1) const {
    return is_range(of_row, x.rows() / lines) ? x : gather_rows(x, std::span<const int>(each_line(of_row, lines)));
  }
  /// Values of the rows [R D, C] on the states [N D, C].
  template <class T>
  Var<T> on_states(Var<T> x, std::size_t lines = 1) const {
    return is_range(row, x.rows() / lines) ? x : gather_rows(x, std::span<const int>(each_line(row, lines)));
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
  /// Among the rows of the items, those chosen last [N D]. With D columns, column d of example b has items of its own, those of
  /// number b D + d.
  std::vector<int> chosen(const Items& items) const {
    std::vector<int> index(option.size());
    const std::size_t columns = size() == 0 ? 1 : option.size() / size();
    const auto whose = each_line(example, columns);
    for (std::size_t n = 0; n < index.size(); ++n) index[n] = items.row(whose[n], option[n]);
    return index;
  }
  /// What the states take of values [items, C] by weights [R D, S] of their rows: [N D, C]. Items as above.
  template <class T>
  Var<T> mixed(Var<T> weights, Var<T> values, const Items& items) const {
    const std::size_t columns = weights.rows() / of_row.size();
    return mix(on_states(weights, columns), values, std::span<const int>(each_line(example, columns)), items);
  }
  /// Numbers of D lines each: n -> n D .. n D + D - 1, and -1 -> -1.
  static std::vector<int> each_line(const std::vector<int>& index, std::size_t lines) {
    if (lines == 1) return index;
    std::vector<int> all;
    all.reserve(index.size() * lines);
    for (int n : index)
      for (std::size_t d = 0; d < lines; ++d) all.push_back(n < 0 ? -1 : n * static_cast<int>(lines) + static_cast<int>(d));
    return all;
  }
  /// `parent` as an index of `gather_sum` into `before` states: empty if every state goes on as it stands.
  std::span<const int> moved(std::size_t before) const {
    if (is_range(parent, before)) return {};
    return parent;
  }

 private:
  /// Rows of one state, of one example and with one option are one state; the others part. Returns how many states there are,
  /// numbered in the order of their first rows. Rows of an example are contiguous.
  template <class F>
  static std::size_t part(std::vector<int>& state, std::size_t states, const std::vector<int>& whose, std::size_t options,
                          F option) {
    struct Made {
      int example = -1, state = -1;
    };
    std::vector<Made> made(states * options);
    int parts = 0;
    for (std::size_t r = 0; r < state.size(); ++r) {
      if (state[r] < 0) continue;
      auto& known = made[state[r] * options + option(r)];
      if (known.example != whose[r]) known = {whose[r], parts++};
      state[r] = known.state;
    }
    return parts;
  }
  /// Every row that has a state gets one of its own. Returns how many.
  static std::size_t count(std::vector<int>& state) {
    int states = 0;
    for (int& n : state)
      if (n >= 0) n = states++;
    return states;
  }
  static bool is_range(const std::vector<int>& index, std::size_t count) {
    if (index.size() != count) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (index[i] != static_cast<int>(i)) return false;
    return true;
  }
};

}  // namespace hardgrad
