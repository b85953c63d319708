// The states of a network after its choices. Models use these operations instead of index lists.
//
//   States states(episode, distinct);                                             // before the first choice
//   auto i = states.choose({.name = "sentence", .logits = e, .items = ...});    // the states after this choice
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
#include "core/choice/subsets.hpp"
#include "core/models/parts/histories.hpp"
#include "core/models/parts/sum.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

/// A question of N states: the choice of an item of their example, or of a subset of k items, in each of D columns.
template <class T>
struct ItemSite {
  std::string_view name;  ///< of the site
  Var<T> logits;          ///< [N D, S] logits
  const Items& items;     ///< the options; with several columns, those of column d of example b are number b D + d
  Var<T> state;           ///< [N, C] the network's state
  /// Logits of the learned posterior, if any: [M D, S] for the M states of `States::by_example()`, as it also sees the answer.
  std::function<Var<T>()> posterior = {};
  int columns = 1;  ///< D
  /// [N D] number of items that a state may choose, from the first on; empty: all.
  std::vector<int> options = {};
  int subset_size = 1;                    ///< k; of fewer items all
  Var<T> behaviour = {}, reference = {};  ///< [N D, S] logits of these policies (Site), if any
  std::vector<int> subset_size_of = {};   ///< [N D] k of each choice, at most `subset_size`; empty: `subset_size`
  SubsetDistribution law = SubsetDistribution::conditional_poisson;  ///< of more than one pick
};

/// A question of N states for D numbers, each from a Normal.
template <class T>
struct NumberSite {
  struct NormalParameters {
    Var<T> mean, log_scale;  ///< [N, D]
  };
  std::string_view name;   ///< of the site
  NormalParameters prior;  ///< the prior
  Var<T> state;            ///< [N, C] the network's state
  std::function<NormalParameters()> posterior =
      {};  ///< the learned posterior, if any, for the M states of `States::by_example()`
};

/// A handle: copies share their data.
template <class T>
class States {
 public:
  /// Before the first choice: one state per distinct example. `episode` and `distinct` must outlive the object.
  States(Episode<T>& episode, const Distinct& distinct)
      : States(episode, distinct, episode.root(), Histories::root(distinct)) {}
  /// Before the first choice of a network whose first state does not depend on the example: one state for all rows.
  static States unseen(Episode<T>& episode, const Distinct& distinct) {
    States states(episode, distinct, episode.root(), Histories::one(episode.root()->size()));
    states.seen_ = false;
    return states;
  }
  /// The same states, split by distinct example: states.by_example().after(x) has x of each.
  States by_example() const {
    if (seen_) return next_step();
    auto histories = Histories::root(*distinct_);
    histories.parent.assign(histories.size(), 0);  // of the single state before
    return {*episode_, *distinct_, rows_, std::move(histories)};
  }

  /// Asks the episode and returns the states after its answer. The items must outlive the result.
  States choose(const ItemSite<T>& site) const {
    const auto columns = static_cast<std::size_t>(site.columns);
    std::vector<int> options, subset_size;
    options.reserve(rows_->size() * columns);
    for (std::size_t r = 0; r < rows_->size(); ++r)
      for (int d = 0; d < site.columns; ++d) {
        const int n = histories_->of_row[r];
        const std::size_t choice = static_cast<std::size_t>(std::max(n, 0)) * site.columns + d;
        if (n < 0)
          options.push_back(1);
        else if (site.options.empty())
          options.push_back(site.items.count(distinct_->index[rows_->example[r]] * site.columns + d));
        else
          options.push_back(site.options[choice]);
        if (!site.subset_size_of.empty()) subset_size.push_back(n < 0 ? 1 : site.subset_size_of[choice]);
      }
    const auto law = [&](Var<T> logits) -> DistributionPtr<T> {
      if (site.subset_size > 1)
        return subsets(logits, options, SubsetSize(site.subset_size, subset_size), site.columns, site.law);
      return categorical(logits, options, site.columns);
    };
    const DistributionPtr<T> prior = law(histories_->on_rows(site.logits, columns));
    Site<T> at_rows{.name = site.name, .rows = rows_, .prior = prior, .state = histories_->on_rows(site.state)};
    if (site.posterior) at_rows.posterior = [&] { return law(by_example().histories_->on_rows(site.posterior(), columns)); };
    if (site.behaviour) at_rows.behaviour = law(histories_->on_rows(site.behaviour, columns));
    if (site.reference) at_rows.reference = law(histories_->on_rows(site.reference, columns));
    const auto choice = episode_->choose(std::move(at_rows));
    States next{*this, choice.rows, histories_->after(choice, site.items.most(), *distinct_), &site.items,
                choice.relaxed() ? choice.weights() : Var<T>{}};
    next.subset_size_ = site.subset_size;
    return next;
  }
  States choose(const NumberSite<T>& site) const {
    const auto on_rows = [](const Histories& histories, const typename NumberSite<T>::NormalParameters& parameters) {
      return normal(histories.on_rows(parameters.mean), histories.on_rows(parameters.log_scale));
    };
    Site<T> at_rows{
        .name = site.name, .rows = rows_, .prior = on_rows(*histories_, site.prior), .state = histories_->on_rows(site.state)};
    if (site.posterior) at_rows.posterior = [&] { return on_rows(*by_example().histories_, site.posterior()); };
    const auto choice = episode_->choose(std::move(at_rows));
    States next{*this, choice.rows, histories_->after(choice, 0, *distinct_), nullptr, {}};
    next.numbers_ = choice.value();
    return next;
  }
  /// The same states one step later, without a choice.
  States next_step() const { return {*this, rows_, histories_->next_step(), nullptr, {}}; }
  /// The same states one step later. They read the mean of choice i under the prior instead of the chosen item.
  States expecting(const States& i) const {
    return {*this, rows_, histories_->next_step(), i.items_,
            probabilities(episode_->steps()[i.rows_->step].question.prior_categories().log_p())};
  }
  /// Keeps the states whose distinct example `goes_on`; the others are finished.
  template <class F>
  States only(F goes_on) && {
    if (!std::all_of(histories_->example.begin(), histories_->example.end(), goes_on))
      histories_ = std::make_shared<const Histories>(Histories(*histories_).only(goes_on));
    return std::move(*this);
  }
  /// Moves each row to the states from which it continues, if the episode's observer reorders rows.
  States as_observed() && {
    const auto from = episode_->observer() ? episode_->observer()->goes_on_from() : std::vector<int>{};
    if (!from.empty()) histories_ = std::make_shared<const Histories>(histories_->moved_to(from, *distinct_));
    return std::move(*this);
  }
  /// Keeps the states [N] that `go_on`; the others are finished.
  States only_states(const std::vector<char>& go_on) && {
    histories_ = std::make_shared<const Histories>(Histories(*histories_).only_states(go_on));
    return std::move(*this);
  }

  /// x [N before, C] of the states before the choice -> [N, C] on the states after it.
  Sum<T> after(Var<T> x) const { return {x, histories_->moved(x.rows())}; }
  /// The chosen one of the values [items, C], or their mixture if the choice is relaxed, summed over the picks and columns.
  /// Empty if there are no values or no choice was made.
  Sum<T> read(Var<T> values) const {
    if (!values || !items_) return {};
    if (hard()) return sum_of_rows(values, chosen(), columns() * subset_size_);
    const auto mixed = histories_->mixed(weights_, values, *items_);
    if (columns() == 1) return mixed;
    return sum_of_rows(mixed, range(mixed.rows()), columns());
  }
  /// The chosen rows of a table [S, C] that all examples share, or their mixture. One column and one pick only.
  Sum<T> of_table(Var<T> table) const {
    if (hard()) return {table, std::span<const int>(options())};
    return matmul(histories_->on_states(weights_), table);
  }
  /// [N, D] the chosen numbers.
  Var<T> numbers() const { return histories_->on_states(numbers_); }
  /// The choice as weights [N D, S]; 1 at its picks if it was hard.
  Var<T> weights() const {
    if (!hard()) return histories_->on_states(weights_, columns());
    const auto& option = histories_->option;
    const auto ones = episode_->tape().constant(option.size() / subset_size_, items_->most());
    for (std::size_t n = 0; n < option.size(); ++n)
      if (option[n] >= 0) episode_->tape().mutable_value(ones)(n / subset_size_, option[n]) = 1;
    return ones;
  }
  bool hard() const { return !weights_; }
  /// [N D k] the chosen options, if the choice was hard.
  const std::vector<int>& options() const { return histories_->option; }
  /// [N D k] the chosen items, if the choice was hard; -1 for none.
  std::vector<int> chosen() const { return histories_->chosen(*items_, subset_size_); }
  /// k and D of the last choice.
  std::size_t subset_size() const { return subset_size_; }
  std::size_t columns() const {
    return hard() ? histories_->option.size() / size() / subset_size_ : weights_.rows() / rows_->size();
  }

  std::size_t size() const { return histories_->size(); }
  const RowsPtr& rows() const { return rows_; }
  const Histories& histories() const { return *histories_; }
  /// [N] the distinct example of each state.
  std::span<const int> example() const { return histories_->example; }
  /// [N] f(distinct example) of each state.
  template <class F>
  std::vector<int> each(F f) const {
    std::vector<int> all;
    all.reserve(size());
    for (int b : histories_->example) all.push_back(f(b));
    return all;
  }

  /// Passes the loss [N, 1] of each state to the episode.
  void cost(Var<T> loss) const { episode_->cost(rows_, histories_->on_rows(loss)); }
  /// Passes the predicted label [N] of each state to the episode.
  void predict(std::span<const int> label) const { episode_->predict(rows_, histories_->labels_on_rows(label)); }
  void cost(const Classified<T>& classified) const {
    cost(classified.loss);
    predict(classified.label);
  }
  /// [R] labels at `place`, drawn by the episode's observer from softmax(logits [N, V]); -1 for finished rows.
  std::vector<int> observed(Var<T> logits, int place) const {
    std::vector<int> row, example, state, label(rows_->size(), -1);
    for (std::size_t r = 0; r < rows_->size(); ++r)
      if (histories_->of_row[r] >= 0) {
        row.push_back(static_cast<int>(r));
        example.push_back(rows_->example[r]);
        state.push_back(histories_->of_row[r]);
      }
    const auto drawn = episode_->observer()->observe(example, Sum<T>(logits, std::move(state)), place);
    for (std::size_t n = 0; n < row.size(); ++n) label[row[n]] = drawn[n];
    return label;
  }

 private:
  States(Episode<T>& episode, const Distinct& distinct, RowsPtr rows, Histories histories)
      : episode_(&episode),
        distinct_(&distinct),
        rows_(std::move(rows)),
        histories_(std::make_shared<const Histories>(std::move(histories))) {}
  States(const States& before, RowsPtr rows, Histories histories, const Items* items, Var<T> weights)
      : episode_(before.episode_),
        distinct_(before.distinct_),
        rows_(std::move(rows)),
        histories_(std::make_shared<const Histories>(std::move(histories))),
        items_(items),
        weights_(weights) {}

  Episode<T>* episode_;
  const Distinct* distinct_;
  RowsPtr rows_;
  std::shared_ptr<const Histories> histories_;
  const Items* items_ = nullptr;  // of the last choice; null without one
  Var<T> weights_;                // [R D, S] of the last choice, if it was relaxed
  Var<T> numbers_;                // [R, D] of the last choice, if it was of numbers
  std::size_t subset_size_ = 1;   // k of the last choice
  bool seen_ = true;              // states depend on their example
};

/// s' = LSTM(input, s), with s [N before, H] before the choice and input [N, 4H], the other terms of the gates.
template <class T>
LstmState<T> lstm_step(const Lstm<T>& lstm, const States<T>& states, Sum<T> input, const LstmState<T>& s) {
  const auto recurrent = s.h.tape->parameter(*lstm.recurrent);
  if (states.size() > s.h.rows()) {  // fewer states before the choice: take the product there
    const Var<T> gates = states.after(linear(s.h, recurrent)) + std::move(input);
    return lstm_cell(gates, Var<T>(states.after(s.c)));
  }
  const Var<T> h = states.after(s.h), from_input = std::move(input);
  return lstm_cell(add_linear(from_input, h, recurrent), Var<T>(states.after(s.c)));
}

}  // namespace hardgrad
