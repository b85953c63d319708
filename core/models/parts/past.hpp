// The states of a network after its choices. Models use these operations instead of index lists.
//
//   Past past(episode, distinct);                                             // before the first choice
//   auto i = past.choose({.name = "sentence", .scores = e, .items = ...});    // the past after this choice
//   u = i.after(u) + i.read(memory);                                          // u before the choice, plus the chosen memory
//
// A matrix has one line per state. All rows of the run with the same history share a state (histories.hpp).
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/normal.hpp"
#include "core/models/parts/histories.hpp"
#include "core/models/parts/sum.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

/// A question of N states: the choice of an item of their example, in each of D columns.
template <class T>
struct Ask {
  std::string_view name;  ///< of the site
  Var<T> scores;          ///< [N D, S] logits
  const Items& items;     ///< the options; with several columns, those of column d of example b are number b D + d
  Var<T> state;           ///< [N, C] the network's state
  /// Logits of the learned posterior, if any: [M D, S] for the M states of `Past::told()`, as it also sees the answer.
  std::function<Var<T>()> posterior = {};
  int columns = 1;  ///< D
  /// [N D] number of items that a state may choose, from the first on; empty: all.
  std::vector<int> options = {};
};

/// A question of N states for D numbers, each from a Normal.
template <class T>
struct AskNumbers {
  struct Law {
    Var<T> mean, log_scale;  ///< [N, D]
  };
  std::string_view name;                ///< of the site
  Law law;                              ///< the prior
  Var<T> state;                         ///< [N, C] the network's state
  std::function<Law()> posterior = {};  ///< the learned posterior, if any, for the M states of `Past::told()`
};

/// A handle: copies share their data.
template <class T>
class Past {
 public:
  /// Before the first choice: one state per distinct example. `episode` and `distinct` must outlive the object.
  Past(Episode<T>& episode, const Distinct& distinct) : Past(episode, distinct, episode.root(), Histories::root(distinct)) {}
  /// Before the first choice of a network whose first state does not depend on the example: one state for all rows.
  static Past unseen(Episode<T>& episode, const Distinct& distinct) {
    Past past(episode, distinct, episode.root(), Histories::one(episode.root()->size()));
    past.seen_ = false;
    return past;
  }
  /// The same states, split by distinct example: past.told().after(x) has x of each.
  Past told() const {
    if (seen_) return again();
    auto states = Histories::root(*distinct_);
    states.parent.assign(states.size(), 0);  // of the single state before
    return {*episode_, *distinct_, rows_, std::move(states)};
  }

  /// Asks the episode and returns the past after its answer. The items must outlive the result.
  Past choose(const Ask<T>& ask) const {
    const auto columns = static_cast<std::size_t>(ask.columns);
    std::vector<int> options;
    options.reserve(rows_->size() * columns);
    for (std::size_t r = 0; r < rows_->size(); ++r)
      for (int d = 0; d < ask.columns; ++d)
        if (const int n = states_->of_row[r]; n < 0)
          options.push_back(1);
        else if (ask.options.empty())
          options.push_back(ask.items.count(distinct_->index[rows_->example[r]] * ask.columns + d));
        else
          options.push_back(ask.options[static_cast<std::size_t>(n) * ask.columns + d]);
    const auto prior = categorical(states_->on_rows(ask.scores, columns), std::move(options), ask.columns);
    Site<T> site{.name = ask.name, .rows = rows_, .prior = prior, .state = states_->on_rows(ask.state)};
    if (ask.posterior) site.posterior = [&] { return prior->with(told().states_->on_rows(ask.posterior(), columns)); };
    const auto choice = episode_->choose(std::move(site));
    return {*this, choice.rows, states_->after(choice, ask.items.most(), *distinct_), &ask.items,
            choice.relaxed() ? choice.weights() : Var<T>{}};
  }
  Past choose(const AskNumbers<T>& ask) const {
    const auto on_rows = [](const Histories& states, const typename AskNumbers<T>::Law& law) {
      return normal(states.on_rows(law.mean), states.on_rows(law.log_scale));
    };
    Site<T> site{.name = ask.name, .rows = rows_, .prior = on_rows(*states_, ask.law), .state = states_->on_rows(ask.state)};
    if (ask.posterior) site.posterior = [&] { return on_rows(*told().states_, ask.posterior()); };
    const auto choice = episode_->choose(std::move(site));
    Past next{*this, choice.rows, states_->after(choice, 0, *distinct_), nullptr, {}};
    next.numbers_ = choice.value();
    return next;
  }
  /// The same states one step later, without a choice.
  Past again() const { return {*this, rows_, states_->again(), nullptr, {}}; }
  /// The same states one step later. They read the mean of choice i under the prior instead of the chosen item.
  Past expecting(const Past& i) const {
    return {*this, rows_, states_->again(), i.items_,
            probabilities(episode_->steps()[i.rows_->step].question.prior_categories().log_p())};
  }
  /// Keeps the states whose distinct example `goes_on`; the others are finished.
  template <class F>
  Past only(F goes_on) && {
    if (!std::all_of(states_->example.begin(), states_->example.end(), goes_on))
      states_ = std::make_shared<const Histories>(Histories(*states_).only(goes_on));
    return std::move(*this);
  }
  /// Moves each row to the past from which it continues, if the episode's observer reorders rows.
  Past as_observed() && {
    const auto from = episode_->observer() ? episode_->observer()->goes_on_from() : std::vector<int>{};
    if (!from.empty()) states_ = std::make_shared<const Histories>(states_->moved_to(from, *distinct_));
    return std::move(*this);
  }
  /// Keeps the states [N] that `go_on`; the others are finished.
  Past only_states(const std::vector<char>& go_on) && {
    states_ = std::make_shared<const Histories>(Histories(*states_).only_states(go_on));
    return std::move(*this);
  }

  /// x [N before, C] of the states before the choice -> [N, C] on the states after it.
  Sum<T> after(Var<T> x) const { return {x, states_->moved(x.rows())}; }
  /// The chosen one of the values [items, C], or their mixture if the choice is relaxed, summed over the columns. Empty if
  /// there are no values or no choice was made.
  Sum<T> read(Var<T> values) const {
    if (!values || !items_) return {};
    if (hard()) return sum_of_rows(values, chosen(), columns());
    const auto mixed = states_->mixed(weights_, values, *items_);
    if (columns() == 1) return mixed;
    std::vector<int> every(mixed.rows());
    std::iota(every.begin(), every.end(), 0);
    return sum_of_rows(mixed, std::move(every), columns());
  }
  /// The chosen rows of a table [S, C] that all examples share, or their mixture. One column only.
  Sum<T> of_table(Var<T> table) const {
    if (hard()) return {table, std::span<const int>(options())};
    return matmul(states_->on_states(weights_), table);
  }
  /// [N, D] the chosen numbers.
  Var<T> numbers() const { return states_->on_states(numbers_); }
  /// The choice as weights [N D, S]; one-hot if it was hard.
  Var<T> weights() const {
    if (!hard()) return states_->on_states(weights_, columns());
    const auto ones = episode_->tape().constant(states_->option.size(), items_->most());
    for (std::size_t n = 0; n < states_->option.size(); ++n) episode_->tape().mutable_value(ones)(n, states_->option[n]) = 1;
    return ones;
  }
  bool hard() const { return !weights_; }
  /// [N D] the chosen options, if the choice was hard.
  const std::vector<int>& options() const { return states_->option; }
  /// [N D] the chosen items, if the choice was hard.
  std::vector<int> chosen() const { return states_->chosen(*items_); }
  /// D of the last choice.
  std::size_t columns() const { return hard() ? states_->option.size() / size() : weights_.rows() / rows_->size(); }

  std::size_t size() const { return states_->size(); }
  const RowsPtr& rows() const { return rows_; }
  const Histories& states() const { return *states_; }
  /// [N] the distinct example of each state.
  std::span<const int> example() const { return states_->example; }
  /// [N] f(distinct example) of each state.
  template <class F>
  std::vector<int> each(F f) const {
    std::vector<int> all;
    all.reserve(size());
    for (int b : states_->example) all.push_back(f(b));
    return all;
  }

  /// Passes the loss [N, 1] of each state to the episode.
  void cost(Var<T> loss) const { episode_->cost(rows_, states_->on_rows(loss)); }
  /// Passes the predicted label [N] of each state to the episode.
  void predict(std::span<const int> label) const { episode_->predict(rows_, states_->labels_on_rows(label)); }
  void cost(const Classified<T>& said) const {
    cost(said.loss);
    predict(said.label);
  }
  /// [R] labels at `place`, drawn by the episode's observer from softmax(logits [N, V]); -1 for finished rows.
  std::vector<int> observed(Var<T> logits, int place) const {
    std::vector<int> row, example, state, label(rows_->size(), -1);
    for (std::size_t r = 0; r < rows_->size(); ++r)
      if (states_->of_row[r] >= 0) {
        row.push_back(static_cast<int>(r));
        example.push_back(rows_->example[r]);
        state.push_back(states_->of_row[r]);
      }
    const auto drawn = episode_->observer()->observe(example, Sum<T>(logits, std::move(state)), place);
    for (std::size_t n = 0; n < row.size(); ++n) label[row[n]] = drawn[n];
    return label;
  }

 private:
  Past(Episode<T>& episode, const Distinct& distinct, RowsPtr rows, Histories states)
      : episode_(&episode),
        distinct_(&distinct),
        rows_(std::move(rows)),
        states_(std::make_shared<const Histories>(std::move(states))) {}
  Past(const Past& before, RowsPtr rows, Histories states, const Items* items, Var<T> weights)
      : episode_(before.episode_),
        distinct_(before.distinct_),
        rows_(std::move(rows)),
        states_(std::make_shared<const Histories>(std::move(states))),
        items_(items),
        weights_(weights) {}

  Episode<T>* episode_;
  const Distinct* distinct_;
  RowsPtr rows_;
  std::shared_ptr<const Histories> states_;
  const Items* items_ = nullptr;  // of the last choice; null without one
  Var<T> weights_;                // [R D, S] of the last choice, if it was relaxed
  Var<T> numbers_;                // [R, D] of the last choice, if it was of numbers
  bool seen_ = true;              // states depend on their example
};

/// s' = LSTM(input, s), with s [N before, H] before the choice and input [N, 4H], the other terms of the gates.
template <class T>
LstmState<T> lstm_step(const Lstm<T>& lstm, const Past<T>& past, Sum<T> input, const LstmState<T>& s) {
  const auto recurrent = s.h.tape->parameter(*lstm.recurrent);
  if (past.size() > s.h.rows()) {  // fewer states before the choice: take the product there
    const Var<T> gates = past.after(linear(s.h, recurrent)) + std::move(input);
    return lstm_cell(gates, Var<T>(past.after(s.c)));
  }
  const Var<T> h = past.after(s.h), from_input = std::move(input);
  return lstm_cell(add_linear(from_input, h, recurrent), Var<T>(past.after(s.c)));
}

}  // namespace hardgrad
