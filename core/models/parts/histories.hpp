// Groups the rows of a run by their history, so that a network computes each state once.
//
// A state depends on the example and on the earlier choices. Rows that share both share one state. Each row of a relaxed choice
// has its own state, and a finished row has none.
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

// Lists of row numbers.

/// 0 .. count - 1
inline std::vector<int> range(std::size_t count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}
/// list[at[m]] of each m
inline std::vector<int> taken(const std::vector<int>& list, const std::vector<int>& at) {
  std::vector<int> some;
  some.reserve(at.size());
  for (int m : at) some.push_back(list[m]);
  return some;
}
/// Numbers of D lines each: n -> n D .. n D + D - 1, and -1 -> -1.
inline std::vector<int> each_line(const std::vector<int>& index, std::size_t lines) {
  if (lines == 1) return index;
  std::vector<int> all;
  all.reserve(index.size() * lines);
  for (int n : index)
    for (std::size_t d = 0; d < lines; ++d) all.push_back(n < 0 ? -1 : n * static_cast<int>(lines) + static_cast<int>(d));
  return all;
}

/// The states of the R rows that site, [N] in the order of the rows.
struct Histories {
  std::vector<int> of_row;   ///< [R] the row's state; -1: none
  std::vector<int> row;      ///< [N] the first row in this state, or the row whose answer it has
  std::vector<int> example;  ///< [N] its distinct example, non-decreasing
  std::vector<int> parent;   ///< [N] the state from which it continues, among the previous ones
  std::vector<int> option;   ///< [N D k] its choice there, k picks in D columns; empty without a choice or if it was relaxed

  std::size_t size() const { return row.size(); }

  /// Before the first choice: one state per distinct example.
  static Histories root(const Distinct& distinct) {
    Histories h;
    h.of_row = distinct.index;
    h.row = distinct.first;
    h.example = h.parent = range(h.row.size());
    return h;
  }

  /// One state for all rows, independent of their examples.
  static Histories one(std::size_t rows) {
    return {.of_row = std::vector<int>(rows, 0), .row = {0}, .example = {0}, .parent = {0}, .option = {}};
  }

  /// The states after this answer. `options` exceeds every option.
  template <class T>
  Histories after(const Choice<T>& choice, std::size_t options, const Distinct& distinct) const {
    const auto* chosen = std::get_if<ChosenOptions>(&choice.answer);
    const std::size_t rows = choice.rows->size(), columns = rows == 0 || !chosen ? 0 : chosen->option.size() / rows;
    const bool hard = columns > 0, share = hard && !choice.unshared;
    ++options;  // and none, of a subset of fewer options than picks
    const auto from = [&](std::size_t r) { return of_row[choice.rows->parent[r]]; };
    // Groups of rows with equal choices in all columns (and picks) but the last.
    std::vector<int> alike;
    std::size_t groups = size();
    for (std::size_t d = 0; share && d + 1 < columns; ++d) {
      Same same(groups, options);
      std::vector<int> next(rows, -1);
      for (std::size_t r = 0; r < rows; ++r)
        if (const int group = d == 0 ? from(r) : alike[r]; group >= 0)
          next[r] = same.number(group, chosen->option[r * columns + d] + 1, distinct.index[choice.rows->example[r]]);
      alike = std::move(next);
      groups = same.count();
    }
    Histories next{.of_row = std::vector<int>(rows, -1), .row = {}, .example = {}, .parent = {}, .option = {}};
    for (auto* list : {&next.row, &next.example, &next.parent}) list->resize(rows);
    next.option.resize(hard ? rows * columns : 0);
    Same same(share ? groups : 0, options);
    std::size_t states = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const int before = from(r), whose = distinct.index[choice.rows->example[r]];
      if (before < 0) continue;
      const int* option = hard ? &chosen->option[r * columns] : nullptr;
      const auto state = share ? same.number(alike.empty() ? before : alike[r], option[columns - 1] + 1, whose) : int(states);
      next.of_row[r] = state;
      if (static_cast<std::size_t>(state) < states) continue;
      next.row[states] = static_cast<int>(r);
      next.example[states] = whose;
      next.parent[states] = before;
      for (std::size_t d = 0; hard && d < columns; ++d) next.option[states * columns + d] = option[d];
      ++states;
    }
    for (auto* list : {&next.row, &next.example, &next.parent}) list->resize(states);
    next.option.resize(hard ? states * columns : 0);
    return next;
  }

  /// The same states one step later, without a choice.
  Histories next_step() const {
    auto next = *this;
    next.parent = range(size());
    next.option.clear();
    for (std::size_t r = of_row.size(); r-- > 0;)  // an earlier answer may have come from another row
      if (of_row[r] >= 0) next.row[of_row[r]] = static_cast<int>(r);
    return next;
  }

  /// Row r takes the state of row from[r] [R], with its choice and its history. Both must belong to equal examples.
  Histories moved_to(const std::vector<int>& from, const Distinct& distinct) const {
    if (from.size() != of_row.size()) throw Bug("rows can be reordered only with one row per example");
    const std::size_t columns = option.size() / std::max<std::size_t>(size(), 1);
    Histories next{.of_row = std::vector<int>(from.size(), -1), .row = {}, .example = {}, .parent = {}, .option = {}};
    for (std::size_t r = 0; r < from.size(); ++r) {
      const int state = of_row[from[r]];
      if (state < 0) continue;
      next.of_row[r] = static_cast<int>(next.size());
      next.row.push_back(row[state]);
      next.example.push_back(distinct.index[r]);
      next.parent.push_back(parent[state]);
      for (std::size_t d = 0; d < columns; ++d) next.option.push_back(option[state * columns + d]);
    }
    return next;
  }
  /// Keeps the states with `goes_on(example)`; the rows of the others have no state.
  template <class F>
  Histories only(F goes_on) && {
    std::vector<char> go_on;
    for (int b : example) go_on.push_back(goes_on(b));
    return std::move(*this).only_states(go_on);
  }
  /// Keeps the states [N] that `go_on`; the rows of the others have no state.
  Histories only_states(const std::vector<char>& go_on) && {
    if (std::all_of(go_on.begin(), go_on.end(), [](char goes) { return goes != 0; })) return std::move(*this);
    Histories left;
    const std::size_t columns = option.size() / size();
    for (auto* list : {&left.row, &left.example, &left.parent}) list->reserve(size());
    left.option.reserve(option.size());
    std::vector<int> place(size(), -1);
    for (std::size_t n = 0; n < size(); ++n) {
      if (!go_on[n]) continue;
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

  /// Values of the states [N D, C] on the rows [R D, C], D lines each; zeros for rows without a state.
  template <class T>
  Var<T> on_rows(Var<T> x, std::size_t lines = 1) const {
    return is_range(of_row, x.rows() / lines) ? x : gather_rows(x, std::span<const int>(each_line(of_row, lines)));
  }
  /// Values of the rows [R D, C] on the states [N D, C].
  template <class T>
  Var<T> on_states(Var<T> x, std::size_t lines = 1) const {
    return is_range(row, x.rows() / lines) ? x : gather_rows(x, std::span<const int>(each_line(row, lines)));
  }
  /// Sums of the rows' numbers [R] over their states [N]; empty for an empty argument.
  std::vector<double> summed(const std::vector<double>& of_rows) const {
    std::vector<double> sums(of_rows.empty() ? 0 : size());
    for (std::size_t r = 0; r < of_rows.size(); ++r)
      if (of_row[r] >= 0) sums[of_row[r]] += of_rows[r];
    return sums;
  }
  /// Labels of the states [N] on the rows [R]; -1 for rows without a state.
  std::vector<int> labels_on_rows(std::span<const int> label) const {
    std::vector<int> all(of_row.size(), -1);
    for (std::size_t r = 0; r < all.size(); ++r)
      if (of_row[r] >= 0) all[r] = label[of_row[r]];
    return all;
  }
  /// [N D k] the items of the last choice, as rows of `items`; -1 for none. With D columns, column d of example b has items
  /// number b D + d.
  std::vector<int> chosen(const Items& items, std::size_t subset_size = 1) const {
    std::vector<int> index(option.size());
    const std::size_t columns = size() == 0 ? 1 : option.size() / size() / subset_size;
    const auto whose = each_line(example, columns);
    for (std::size_t n = 0; n < index.size(); ++n) index[n] = option[n] < 0 ? -1 : items.row(whose[n / subset_size], option[n]);
    return index;
  }
  /// Mixtures [N D, C] of values [items, C] by the weights [R D, S] of the states' rows. Items as above.
  template <class T>
  Var<T> mixed(Var<T> weights, Var<T> values, const Items& items) const {
    const std::size_t columns = weights.rows() / of_row.size();
    return mix(on_states(weights, columns), values, std::span<const int>(each_line(example, columns)), items);
  }
  /// `parent` as an index of `gather_sum` into `before` states; empty if it is the identity.
  std::span<const int> moved(std::size_t before) const {
    if (is_range(parent, before)) return {};
    return parent;
  }

 private:
  /// Numbers the classes of rows with equal group, option and example, in the order of their first rows. Rows of an example
  /// must be contiguous.
  class Same {
   public:
    Same(std::size_t groups, std::size_t options) : options_(options), made_(groups * options) {}
    int number(int group, int option, int example) {
      auto& known = made_[group * options_ + option];
      if (known.example != example) known = {example, count_++};
      return known.number;
    }
    std::size_t count() const { return count_; }

   private:
    struct CachedStates {
      int example = -1, number = -1;
    };
    std::size_t options_;
    std::vector<CachedStates> made_;
    int count_ = 0;
  };
  static bool is_range(const std::vector<int>& index, std::size_t count) {
    if (index.size() != count) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (index[i] != static_cast<int>(i)) return false;
    return true;
  }
};

}  // namespace hardgrad
