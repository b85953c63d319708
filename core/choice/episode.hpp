// One run of a model: what it asked, what it was answered, what it cost.
//
// A model asks an Episode at every stochastic choice and hands it every loss. The episode passes the question to
// a Chooser (the estimator's strategy) and records everything a surrogate needs. The model never learns who
// answered; the estimator never learns what the network is.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/choice/rows.hpp"

namespace hardgrad {

/// A question of the model: which of S options, for each of D columns of each of R rows. Columns are choices made at once,
/// independent of each other given everything before, that share their costs: the heads of an attention, the bits of a code. A
/// row's columns stand one under the other: cell r D + d.
template <class T>
struct Site {
  std::string_view name;     ///< as the model declares it
  RowsPtr rows;              ///< who asks, [R]
  Var<T> logits;             ///< of the prior [R D, S]
  std::vector<int> options;  ///< [R D] how many options a cell has: the first ones. 1 is no choice at all (a finished row)
  Var<T> state;              ///< [R, C] what the network knew when it asked; learned baselines look at it
  /// Logits [R D, S] of the learned posterior q(z | x, y); empty if the model was built without one. Called at most
  /// once, and only for targets that need it.
  std::function<Var<T>()> posterior = {};
  int columns = 1;  ///< D
};

/// An answer: one hard option per column of each new row, or relaxed weights over all options.
template <class T>
struct Choice {
  RowsPtr rows;             ///< the rows that go on, [R']
  std::vector<int> option;  ///< [R' D] the chosen option (0 where a row is relaxed); empty if all rows are relaxed
  Var<T> weights;           ///< [R' D, S] weights summing to 1 per cell, if relaxed
  bool apart = false;       ///< rows that chose alike are not to share their states: see Episode::keep_apart
  /// The columns answer side by side, each as if it were alone: a row is no set of choices. Only where each column's costs are
  /// its own, and nothing goes on from these rows.
  bool side_by_side = false;
  std::vector<char> spare = {};  ///< [R' D] of columns side by side: true where a column has no answer left; empty if all have
  bool hard() const { return !weights; }
  /// The choice as weights [R' D, S] whichever it is: constant ones and zeros if hard.
  Var<T> one_hot(Tape<T>& tape, std::size_t options) const {
    if (weights) return weights;
    auto ones = tape.constant(option.size(), options);
    for (std::size_t r = 0; r < option.size(); ++r) tape.mutable_value(ones)(r, option[r]) = 1;
    return ones;
  }
};

/// The two distributions of a site.
enum class Distribution { prior, posterior };

/// What a target asks of a run: the distribution choices are drawn from, and what is added to the model's costs.
struct TargetTerms {
  Distribution drawn_from = Distribution::prior;
  /// The divergence of the posterior q from the prior p: not at all; at every site asked, KL(q || p) given what came before;
  /// or log q(z) - log p(z) of what was chosen, whose mean that is.
  enum class Divergence { none, analytic, sampled } divergence = Divergence::none;
};

/// A site as the chooser and the surrogates see it.
template <class T>
struct Question {
  Site<T> site;
  int step = 0;      ///< index of the choice in the run
  Var<T> logits;     ///< [R D, S] of the distribution the choice is drawn from
  Var<T> log_p;      ///< [R D, S] its log softmax over the cell's options; -inf beyond them
  Var<T> log_prior;  ///< [R D, S] the same of the prior

  /// [R' D] the cell of the site that each cell of `rows`, which continue its rows, comes from.
  std::vector<int> cells(const Rows& rows) const;
  /// True if a row has a choice in any of its columns.
  bool chooses(std::size_t row) const;
};

/// Answers questions. One object answers one run.
template <class T>
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual Choice<T> choose(Tape<T>& tape, const Question<T>& question) = 0;
};

/// Draws what a model is judged by from its predictions, instead of judging them (core/models/parts/dreams.hpp).
template <class T>
class Observer {
 public:
  virtual ~Observer() = default;
  /// A label from softmax(logits [n, V]) for each of the examples [n], as what they show at `place`.
  virtual std::vector<int> observe(std::span<const int> example, Var<T> logits, int place) = 0;
};

/// How the model is fed what came before: with the truth, or with its own predictions (for decoding).
enum class Feeding { teacher_forced, free_running };

/// What an estimator says beforehand of its surrogate's slope in the cost of a row, up to one common factor.
enum class CostWeights {
  unknown,
  equal,             ///< the same for all rows of one choice, summing to the same for all choices
  path_probability,  ///< the probability of the choices on the way
  posterior  ///< that of a choice given the costs: path_probability times exp(-cost), shared out among those who ask alike
};

template <class T>
class Episode {
 public:
  struct Step {
    Question<T> question;
    Choice<T> choice;
  };
  struct Cost {
    RowsPtr rows;
    Var<T> loss;  ///< [R, 1]
    Var<T> by_column =
        {};  ///< [R, D] if each column of the choice that made the rows has a cost of its own; `loss` is their sum

    /// [R, D], or [R, 1] if the columns share it.
    Var<T> finest() const { return by_column ? by_column : loss; }
  };
  struct Prediction {
    RowsPtr rows;
    std::vector<int> label;  ///< [R]
  };

  Episode(Tape<T>& tape, Chooser<T>& chooser, int examples, TargetTerms terms = {})
      : tape_(tape), chooser_(chooser), root_(Rows::root(examples)), terms_(terms) {}
  /// The model is fed with its own predictions.
  void run_freely() { feeding_ = Feeding::free_running; }
  /// The model hands its predictions over to be drawn from, and is fed with what was drawn.
  void observe_by(Observer<T>& observer) {
    observer_ = &observer;
    run_freely();
  }

  /// Room for what `steps` choices leave behind.
  void expect(int steps) {
    steps_.reserve(steps);
    costs_.reserve(steps + 1);
    picked_.reserve(steps);
    paths_.reserve(steps);
  }

  // What a model calls
  Tape<T>& tape() const { return tape_; }
  const RowsPtr& root() const { return root_; }
  int examples() const { return static_cast<int>(root_->size()); }
  Feeding feeding() const { return feeding_; }
  /// If there is one, it takes the place of the costs.
  Observer<T>* observer() const { return observer_; }
  /// [R] the slopes of the surrogate in a cost on `rows`, as far as they are known beforehand; empty if they are not. A
  /// hint that saves work if it is true. Of the posterior, the prior.
  std::vector<double> cost_weights(const RowsPtr& rows);
  CostWeights announced() const { return cost_weights_; }
  void announce(CostWeights weights) { cost_weights_ = weights; }
  /// Asks. Rows of the answer continue rows of the site through `Choice::rows->parent`.
  Choice<T> choose(Site<T> site);
  /// Hands over a loss [R, 1] incurred on `rows`, or [R, D], where column d pays for column d of the choice that made the rows
  /// and for nothing else. An example's loss is the sum of all its costs.
  void cost(RowsPtr rows, Var<T> loss);
  /// Hands over what the network would answer on `rows`, for metrics.
  void predict(RowsPtr rows, std::vector<int> label) { predictions_.push_back({std::move(rows), std::move(label)}); }

  /// Makes models work out every row by itself, also those that are the same so far: for checks and benchmarks.
  void keep_apart() { apart_ = true; }

  // What surrogates, metrics and dumps read
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Cost>& costs() const { return costs_; }
  const std::vector<Prediction>& predictions() const { return predictions_; }
  /// log probability of hard choice `step`, [R', 1] on the rows after it, under the distribution it was drawn from: the sum
  /// over its columns, or [R', D] if these answered side by side. Made once, on demand.
  Var<T> log_probability(int step) { return log_probability(step, terms_.drawn_from); }
  Var<T> log_probability(int step, Distribution of);
  /// The same of each column [R', D], also of those that have no answer left.
  Var<T> log_probability_by_column(int step) { return log_probability_by_column(step, terms_.drawn_from); }
  Var<T> log_probability_by_column(int step, Distribution of);
  /// The same of all choices on the way to `rows` [R, 1]; zeros at the root.
  Var<T> path_log_probability(const RowsPtr& rows) { return path_log_probability(rows, terms_.drawn_from); }
  Var<T> path_log_probability(const RowsPtr& rows, Distribution of);
  const TargetTerms& terms() const { return terms_; }
  /// Model rows evaluated: the rows that came out of each choice, summed over the choices. The unit of cost.
  std::size_t rows_evaluated() const;
  /// Attention values computed: entries of all score matrices, [R, S] each.
  std::size_t attention_values() const;

 private:
  struct Made {
    const Rows* rows;
    Distribution of;
    Var<T> value;
  };

  Tape<T>& tape_;
  Chooser<T>& chooser_;
  RowsPtr root_;
  TargetTerms terms_;
  Feeding feeding_ = Feeding::teacher_forced;
  Observer<T>* observer_ = nullptr;
  CostWeights cost_weights_ = CostWeights::unknown;
  bool apart_ = false;
  std::vector<Step> steps_;
  std::vector<Cost> costs_;
  std::vector<Prediction> predictions_;
  std::vector<Made> picked_, picked_by_column_, paths_;
};

extern template struct Question<float>;
extern template struct Question<double>;
extern template class Episode<float>;
extern template class Episode<double>;

}  // namespace hardgrad
