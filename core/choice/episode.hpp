// One run of a model: what it asked, what it was answered, what it cost.
//
// A model asks an Episode at every stochastic choice and hands it every loss. The episode passes the question to
// a Chooser (the estimator's strategy) and records everything a surrogate needs. The model never learns who
// answered; the estimator never learns what the network is.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/choice/categorical.hpp"

namespace hardgrad {

/// A question of the model: D choices (columns) for each of R rows, made at once, independent of each other given everything
/// before, that share their costs: the heads of an attention, the bits of a code. A row's columns stand one under the other:
/// cell r D + d.
template <class T>
struct Site {
  std::string_view name;     ///< as the model declares it
  RowsPtr rows;              ///< who asks, [R]
  DistributionPtr<T> prior;  ///< p(z | x), of R rows
  Var<T> state;              ///< [R, C] what the network knew when it asked; learned baselines look at it
  /// The learned posterior q(z | x, y), of the same kind; empty if the model was built without one. Called at most once, and
  /// only for targets that need it.
  std::function<DistributionPtr<T>()> posterior = {};

  // What the episode reads out of the prior, for estimators.
  int columns = 1;                ///< D
  std::vector<int> options = {};  ///< [R D] of categories: how many a cell has, the first ones. 1 is no choice (a finished row)
  Var<T> logits = {};             ///< [R D, S] of categories
};

/// The two distributions of a site.
enum class DrawnFrom { prior, posterior };

/// What a target asks of a run: the distribution choices are drawn from, and what is added to the model's costs.
struct TargetTerms {
  DrawnFrom drawn_from = DrawnFrom::prior;
  /// The divergence of the posterior q from the prior p: not at all; at every site asked, KL(q || p) given what came before;
  /// or log q(z) - log p(z) of what was chosen, whose mean that is.
  enum class Divergence { none, analytic, sampled } divergence = Divergence::none;
};

/// A site as the chooser and the surrogates see it.
template <class T>
struct Question {
  Site<T> site;
  int step = 0;                     ///< index of the choice in the run
  DistributionPtr<T> distribution;  ///< the one the choice is drawn from: the prior, or the posterior
  int nodes = 0;                    ///< of the quadrature that stands in for an enumeration of numbers, per column

  // Of categories alone.
  Var<T> logits;     ///< [R D, S] of the distribution the choice is drawn from
  Var<T> log_p;      ///< [R D, S] its log softmax over the cell's options; -inf beyond them
  Var<T> log_prior;  ///< [R D, S] the same of the prior

  /// For whoever reads options: Bug if the choice is none among options.
  void require_options() const {
    if (!log_p) throw Bug("options are wanted of a site whose choices are numbers");
  }
  /// [R' D] the cell of the site that each cell of `rows`, which continue its rows, comes from.
  std::vector<int> cells(const Rows& rows) const { return cells_of(rows, site.columns); }
  /// True if a row has a choice in any of its columns.
  bool chooses(std::size_t row) const { return distribution->chooses(row); }
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
  /// [B] whose past each example goes on from after what was drawn last; empty: its own. The examples of a beam search are the
  /// hypotheses, which take each other's places.
  virtual std::vector<int> goes_on_from() const { return {}; }
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
    bool divergence = false;  ///< the target adds it (TargetTerms), the model does not pay it
  };
  struct Prediction {
    RowsPtr rows;
    std::vector<int> label;  ///< [R]
  };

  Episode(Tape<T>& tape, Chooser<T>& chooser, int examples, TargetTerms terms = {})
      : tape_(tape), chooser_(chooser), root_(Rows::root(examples)), terms_(terms) {}
  /// Enumerations take so many nodes per column where choices are numbers.
  void integrate_with(int nodes) { nodes_ = nodes; }
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
  CostWeights hinted() const { return cost_weights_; }
  void hint(CostWeights weights) { cost_weights_ = weights; }
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
  Var<T> log_probability(int step, DrawnFrom of);
  /// The same of each column [R', D], also of those that have no answer left.
  Var<T> log_probability_by_column(int step) { return log_probability_by_column(step, terms_.drawn_from); }
  Var<T> log_probability_by_column(int step, DrawnFrom of);
  /// The same of all choices on the way to `rows` [R, 1]; zeros at the root.
  Var<T> path_log_probability(const RowsPtr& rows) { return path_log_probability(rows, terms_.drawn_from); }
  Var<T> path_log_probability(const RowsPtr& rows, DrawnFrom of);
  const TargetTerms& terms() const { return terms_; }
  /// Model rows evaluated: the rows that came out of each choice, summed over the choices. The unit of cost.
  std::size_t rows_evaluated() const;
  /// Attention values computed: entries of all score matrices, [R, S] each; numbers chosen count one each.
  std::size_t attention_values() const;

 private:
  struct Made {
    const Rows* rows;
    DrawnFrom of;
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
  int nodes_ = 32;
  std::vector<Step> steps_;
  std::vector<Cost> costs_;
  std::vector<Prediction> predictions_;
  std::vector<Made> picked_, picked_by_column_, paths_;
};

extern template class Episode<float>;
extern template class Episode<double>;

}  // namespace hardgrad
