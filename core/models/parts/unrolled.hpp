// Collects the steps of an unrolled network and computes their outputs together, with one product with the vocabulary.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/models/parts/states.hpp"

namespace hardgrad {

/// Steps, concatenated: [M] states that asked, [N] states after their choices.
template <class T>
class Unrolled {
 public:
  explicit Unrolled(Episode<T>& episode) : episode_(episode) {}
  /// Adds step t: the states `state` [., C] that asked, and the states `i` after their choice.
  void add(int t, Var<T> state, States<T> i) {
    for (int parent : i.histories().parent) asked_.push_back(asking_ + parent);
    asking_ += static_cast<int>(state.rows());
    steps_.push_back({t, state, std::move(i)});
  }
  /// The same, with the states [N, C] after the choice.
  void add_after(int t, Var<T> state, States<T> i) {
    for (std::size_t n = 0; n < i.size(); ++n) asked_.push_back(asking_ + static_cast<int>(n));
    asking_ += static_cast<int>(state.rows());
    steps_.push_back({t, state, std::move(i)});
  }
  bool empty() const { return steps_.empty(); }
  void clear() {
    steps_.clear();
    asked_.clear();
    asking_ = 0;
  }

  /// [M, C]
  Var<T> state() const {
    std::vector<Var<T>> states;
    for (const auto& step : steps_) states.push_back(step.state);
    return stacked(states);
  }
  /// x [M, C] of the states that asked -> [N, C] on the states after.
  Sum<T> after(Var<T> x) const { return {x, asked_}; }
  /// The chosen values [items, C] and their sums, as States::read.
  Sum<T> read(Var<T> values) const {
    if (std::all_of(steps_.begin(), steps_.end(), [](const auto& step) { return step.i.hard(); })) {
      std::vector<int> all;
      for (const auto& step : steps_) append(all, step.i.chosen());
      return sum_of_rows(values, std::move(all), steps_[0].i.columns() * steps_[0].i.subset_size());
    }
    std::vector<Var<T>> reads;
    for (const auto& step : steps_) reads.push_back(step.i.read(values));
    return stacked(reads);
  }
  /// [N] f(distinct example, step) of the states after.
  template <class F>
  std::vector<int> each(F f) const {
    std::vector<int> all;
    all.reserve(asked_.size());
    for (const auto& step : steps_)
      for (int b : step.i.example()) all.push_back(f(b, step.t));
    return all;
  }

  /// The last layer, on u [N, C]: passes the losses -log softmax(W u + b)[label] and the predicted labels to the episode, or
  /// the logits to its observer if it has one (one step only). Returns the labels of the last step's rows, or the observer's of
  /// each example [B], on whose rows it agrees.
  std::vector<int> classify(Var<T> u, const Linear<T>& layer, const std::vector<int>& label) const {
    if (episode_.observer()) {
      const auto& i = steps_[0].i;
      const auto observed = i.observed(layer(u), steps_[0].t);
      std::vector<int> of_example(episode_.examples());
      for (std::size_t r = 0; r < observed.size(); ++r) of_example[i.rows()->example[r]] = observed[r];
      return of_example;
    }
    std::vector<double> weight;  // expected weight of each loss
    for (const auto& [t, state, i] : steps_) append(weight, i.histories().summed(episode_.cost_weights(i.rows())));
    // With posterior weights, the states that continue from one asking state share its weight.
    const ExpectedCotangents expected{
        weight, episode_.hinted() == CostWeights::posterior ? std::span<const int>(asked_) : std::span<const int>{}};
    const auto classified = linear_cross_entropy(u, u.tape->parameter(*layer.weight), u.tape->parameter(*layer.bias),
                                                 std::span<const int>(label), expected);
    std::vector<int> labels;
    int first = 0;
    for (const auto& [t, state, i] : steps_) {
      auto place = i.histories().of_row;
      for (int& n : place)
        if (n >= 0) n += first;
      labels = i.histories().labels_on_rows(std::span<const int>(classified.label).subspan(first, i.size()));
      first += static_cast<int>(i.size());
      if (episode_.feeding() == Feeding::teacher_forced)
        episode_.cost(i.rows(), gather_rows(classified.loss, std::span<const int>(place)));
      episode_.predict(i.rows(), labels);
    }
    return labels;
  }

 private:
  struct Step {
    int t;
    Var<T> state;
    States<T> i;
  };
  template <class X>
  static void append(std::vector<X>& to, const std::vector<X>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }
  static Var<T> stacked(const std::vector<Var<T>>& parts) {
    return parts.size() == 1 ? parts[0] : stack_rows(std::span<const Var<T>>(parts));
  }

  Episode<T>& episode_;
  std::vector<Step> steps_;
  std::vector<int> asked_;  // [N] the asking state (of M) from which each continues
  int asking_ = 0;          // M
};

}  // namespace hardgrad
