// One run of a model: what it asked, what it was answered, what it cost.
//
// A model asks an Episode at every stochastic choice and hands it every loss. The episode passes the question to
// a Chooser (the estimator's strategy) and records everything a surrogate needs. The model never learns who
// answered; the estimator never learns what the network is.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/choice/rows.hpp"

namespace hardgrad {

/// A question: which of S options, for each of R rows.
template <class T>
struct Site {
  RowsPtr rows;              ///< who asks, [R]
  Var<T> logits;             ///< prior logits [R, S]
  std::vector<int> options;  ///< [R] how many options a row has: the first ones. 1 is no choice at all (a finished row)
  Var<T> state;              ///< [R, C] what the network knew when it asked; learned baselines look at it
  /// Logits [R, S] of the learned posterior q(z | x, y); empty if the model was built without one. Called at most
  /// once, and only for estimators that propose from it.
  std::function<Var<T>()> proposal;
};

/// An answer: one hard option per new row, or relaxed weights over all options.
template <class T>
struct Choice {
  RowsPtr rows;             ///< the rows that go on, [R']
  std::vector<int> option;  ///< [R'] the chosen option (0 where a row is relaxed); empty if all rows are relaxed
  Var<T> weights;           ///< [R', S] weights summing to 1 per row, if relaxed
  bool apart = false;       ///< rows that chose alike are not to share their states: see Episode::keep_apart
  bool hard() const { return !weights; }
  /// The choice as weights [R', S] whichever it is: constant ones and zeros if hard.
  Var<T> one_hot(Tape<T>& tape, std::size_t options) const {
    if (weights) return weights;
    auto ones = tape.constant(option.size(), options);
    for (std::size_t r = 0; r < option.size(); ++r) tape.mutable_value(ones)(r, option[r]) = 1;
    return ones;
  }
};

/// The distribution a chooser draws from.
enum class Law { prior, proposal };

/// A site as the chooser and the surrogates see it: normalised.
template <class T>
struct Question {
  Site<T> site;
  int step = 0;        ///< index of the choice in the run
  Var<T> log_prior;    ///< [R, S] log softmax over the row's options; -inf beyond them
  Var<T> log_proposal; ///< the same of the proposal; empty unless the chooser asked for it
  const Var<T>& log_law(Law law) const { return law == Law::prior ? log_prior : log_proposal; }
};

/// Answers questions. One object answers one run.
template <class T>
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual Choice<T> choose(Tape<T>& tape, const Question<T>& question) = 0;
  /// True if the proposal is to be evaluated at every site.
  virtual bool wants_proposal() const { return false; }
  /// Of dreaming runs only: draws the label that `example` shows at `place`.
  virtual int observe(std::span<const double> probabilities, int example, int place);
};

/// How the model is fed what came before: with the truth, with its own predictions (for decoding), or with what it
/// draws from them instead of being judged (dreaming).
enum class Feeding { teacher_forced, free_running, dreaming };

/// What an estimator says beforehand of its surrogate's slope in the cost of a row, up to one common factor.
enum class CostWeights {
  unknown,
  equal,            ///< the same for all rows of one choice, summing to the same for all choices
  path_probability, ///< the probability of the choices on the way
  posterior         ///< that of a choice given the costs: path_probability times exp(-cost), shared out among those who ask alike
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
    Var<T> loss;
  };
  struct Prediction {
    RowsPtr rows;
    std::vector<int> label;  ///< [R]
  };

  Episode(Tape<T>& tape, Chooser<T>& chooser, int examples, Feeding feeding = Feeding::teacher_forced)
      : tape_(tape), chooser_(chooser), root_(Rows::root(examples)), feeding_(feeding) {}

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
  /// [R] the slopes of the surrogate in a cost on `rows`, as far as they are known beforehand; empty if they are not. A
  /// hint that saves work if it is true. Of the posterior, the prior.
  std::vector<double> cost_weights(const RowsPtr& rows);
  CostWeights announced() const { return cost_weights_; }
  void announce(CostWeights weights) { cost_weights_ = weights; }
  /// Asks. Rows of the answer continue rows of the site through `Choice::rows->parent`.
  Choice<T> choose(Site<T> site);
  /// Hands over a loss [R, 1] incurred on `rows`; an example's loss is the sum of all its costs.
  void cost(RowsPtr rows, Var<T> loss) { costs_.push_back({std::move(rows), loss}); }
  /// Hands over what the network would answer on `rows`, for metrics.
  void predict(RowsPtr rows, std::vector<int> label) { predictions_.push_back({std::move(rows), std::move(label)}); }

  /// Makes models work out every row by itself, also those that are the same so far: for checks and benchmarks.
  void keep_apart() { apart_ = true; }

  /// Instead of a cost, if dreaming: draws a label from softmax(logits [n, V]) for each of the examples [n], as what
  /// they show at `place`.
  std::vector<int> observe(std::span<const int> example, Var<T> logits, int place);

  // What surrogates, metrics and dumps read
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Cost>& costs() const { return costs_; }
  const std::vector<Prediction>& predictions() const { return predictions_; }
  /// [place][B] the labels a dreaming run drew; -1 is none.
  const std::vector<std::vector<int>>& observed() const { return observed_; }
  /// log law(option) of hard choice `step`, [R', 1] on the rows after it. Made once, on demand.
  Var<T> log_probability(int step, Law law = Law::prior);
  /// log law of all choices on the way to `rows` [R, 1]; zeros at the root.
  Var<T> path_log_probability(const RowsPtr& rows, Law law = Law::prior);
  /// Model rows evaluated: the rows that came out of each choice, summed over the choices. The unit of cost.
  std::size_t rows_evaluated() const;
  /// Attention values computed: entries of all score matrices, [R, S] each.
  std::size_t attention_values() const;

 private:
  struct Made {
    const Rows* rows;
    Law law;
    Var<T> value;
  };
  Tape<T>& tape_;
  Chooser<T>& chooser_;
  RowsPtr root_;
  Feeding feeding_;
  CostWeights cost_weights_ = CostWeights::unknown;
  bool apart_ = false;
  std::vector<Step> steps_;
  std::vector<Cost> costs_;
  std::vector<Prediction> predictions_;
  std::vector<std::vector<int>> observed_;
  std::vector<Made> picked_, paths_;
};

extern template class Episode<float>;
extern template class Episode<double>;

}  // namespace hardgrad
