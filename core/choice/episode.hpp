// One run of a model: its questions, the answers and the costs.
//
// A model asks an Episode at every stochastic choice and reports every loss to it. The episode passes the question to a Handler
// (the estimator's strategy) and records all values that a surrogate needs. The model does not depend on the handler, nor the
// estimator on the network.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/choice/categorical.hpp"

namespace hardgrad {

/// Of options that are points of a space: each choice has a point of its own there, near which it chooses (codes_of).
template <class T>
struct Codes {
  Var<T> point;  ///< [R D, d]
  Var<T> table;  ///< [S, d] the points of the options
};

/// A question of the model: D choices (columns) for each of R rows, made at once. The columns are independent given all earlier
/// choices; e.g. the heads of an attention, or the bits of a code. Choice r D + d is column d of row r.
template <class T>
struct Site {
  std::string_view name;     ///< as the model declares it
  RowsPtr rows;              ///< the asking rows, [R]
  DistributionPtr<T> prior;  ///< p(z | x), of R rows
  Var<T> state;              ///< [R, C] the network's state at this question, an input of learned baselines
  /// The learned posterior q(z | x, y), of the same kind; empty if the model was built without one. Called at most once, and
  /// only for targets that need it.
  std::function<DistributionPtr<T>()> posterior = {};
  /// The older policy that draws samples for estimators which correct for it, and a fixed policy to stay near. Both are of the
  /// prior's kind, and their parameters have no gradients. Empty behaviour: the prior. Empty reference: none. Those of other
  /// networks (Model::Policies) replace them.
  DistributionPtr<T> behaviour = {}, reference = {};
  int columns = 1;      ///< D, set by the episode from the prior
  Codes<T> codes = {};  ///< if its options are codes
};

/// The distributions of a site.
enum class DrawnFrom { prior, posterior, behaviour, reference };

/// A target's requirements on a run: the distribution to draw from, and the divergence added to the model's costs.
struct TargetTerms {
  DrawnFrom drawn_from = DrawnFrom::prior;
  /// The divergence of the posterior q from the prior p. none: not added. analytic: KL(q || p) given the earlier choices, at
  /// every question. sampled: log q(z) - log p(z) of the drawn choices, which has the same mean.
  enum class Divergence { none, analytic, sampled } divergence = Divergence::none;
  double divergence_weight = 1;  ///< of the divergence of the posterior
  /// Weight of KL(p || reference) given the earlier choices, added for every question.
  double to_reference = 0;
  bool reads_reference = false;  ///< the reference policy is needed, whether its divergence is added or not
};

/// A site as the handler and the surrogates see it.
template <class T>
struct Question {
  Site<T> site;
  int step = 0;                     ///< index of the choice in the run
  DistributionPtr<T> distribution;  ///< the distribution drawn from: the prior or the posterior
  int nodes = 0;                    ///< quadrature nodes per column, which replace the enumeration for numbers

  /// True if the choices are options (or sets of them), false if they are numbers.
  bool has_options() const { return distribution->kind().options; }
  /// The distribution drawn from, and the prior, of choices that are one option each. Bug if they are not.
  const Categorical<T>& categories() const { return distribution->categories(); }
  const Categorical<T>& prior_categories() const { return site.prior->categories(); }
  /// [R' D] for each choice of `rows`, the site's choice in its parent row.
  std::vector<int> parent_choices(const Rows& rows) const { return parent_choices_of(rows, site.columns); }
  /// True if a row has a choice in any of its columns.
  bool chooses(std::size_t row) const { return distribution->chooses(row); }
  /// One of the site's distributions. The posterior exists only where choices are drawn from it. Bug if there is none.
  const DistributionPtr<T>& of(DrawnFrom which) const {
    if (which == DrawnFrom::prior || (which == DrawnFrom::behaviour && !site.behaviour)) return site.prior;
    const auto& found = which == DrawnFrom::posterior   ? distribution
                        : which == DrawnFrom::behaviour ? site.behaviour
                                                        : site.reference;
    if (!found) throw Bug("this run has no such distribution");
    return found;
  }
};

/// Answers questions. One object answers one run.
template <class T>
class Handler {
 public:
  virtual ~Handler() = default;
  virtual Choice<T> choose(Tape<T>& tape, const Question<T>& question) = 0;
};

/// Draws the labels from the model's predictions, instead of computing the loss on the true labels
/// (core/models/parts/answer_sampler.hpp).
template <class T>
class Observer {
 public:
  virtual ~Observer() = default;
  /// Draws a label for each of the examples [n] from softmax(logits [n, V]), as its label at `place`.
  virtual std::vector<int> observe(std::span<const int> example, Var<T> logits, int place) = 0;
  /// [B] for each example, the example whose history it continues after the last draw; empty: its own. In a beam search the
  /// examples are the hypotheses, which replace each other.
  virtual std::vector<int> goes_on_from() const { return {}; }
};

/// The inputs of later steps: the true labels, or the model's own predictions (for decoding).
enum class Feeding { teacher_forced, free_running };

/// An estimator's hint, before the run, at d surrogate / d cost for each row, up to one common factor.
enum class CostWeights {
  unknown,
  equal,             ///< equal for all rows of one choice, with the same sum for every choice
  path_probability,  ///< the probability of the row's choices
  posterior          ///< p(choice | costs): path_probability times exp(-cost), normalised over one asking row's continuations
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
    /// [R, D] if each column of the choice that made the rows has a separate cost; `loss` is their sum.
    Var<T> by_column = {};
    bool divergence = false;  ///< true if the target adds it (TargetTerms), not the model
  };
  struct Prediction {
    RowsPtr rows;
    std::vector<int> label;  ///< [R]
  };

  Episode(Tape<T>& tape, Handler<T>& handler, int examples, TargetTerms terms = {})
      : tape_(tape), handler_(handler), root_(Rows::root(examples)), terms_(terms) {}
  /// Sets the quadrature nodes per column, for choices that are numbers.
  void integrate_with(int nodes) { nodes_ = nodes; }
  /// The model's inputs are its own predictions.
  void run_freely() { feeding_ = Feeding::free_running; }
  /// The observer draws labels from the model's predictions, and they are the model's inputs.
  void observe_by(Observer<T>& observer) {
    observer_ = &observer;
    run_freely();
  }

  /// The distributions of another run, whose choices this run repeats, are the behaviour policy of its questions.
  void behave_as(std::shared_ptr<const Episode> other) { behaves_as_ = std::move(other); }
  /// After the run: the distributions of another run, which has repeated its choices, are the reference policy of its questions.
  void refer_to(std::shared_ptr<const Episode> other);
  /// After the run: adds the divergence from the reference policy to the costs, if the target has one.
  void add_divergence_from_reference();

  /// Reserves memory for the records of `steps` choices.
  void expect(int steps) {
    steps_.reserve(steps);
    costs_.reserve(steps + 1);
    picked_.reserve(steps);
    paths_.reserve(steps);
  }

  // Called by models
  Tape<T>& tape() const { return tape_; }
  const RowsPtr& root() const { return root_; }
  int examples() const { return static_cast<int>(root_->size()); }
  Feeding feeding() const { return feeding_; }
  /// Null if there is none. With an observer, the model reports predictions to it instead of costs.
  Observer<T>* observer() const { return observer_; }
  /// [R] the hinted d surrogate / d cost of `rows`; empty if unknown. A correct hint saves work, a wrong one changes no result.
  /// For CostWeights::posterior these are the prior's path probabilities.
  std::vector<double> cost_weights(const RowsPtr& rows);
  CostWeights hinted() const { return cost_weights_; }
  void hint(CostWeights weights) { cost_weights_ = weights; }
  /// Asks a question. `Choice::rows->parent` gives the site's row that each row of the answer continues.
  Choice<T> choose(Site<T> site);
  /// Reports a loss of `rows`: [R, 1], or [R, D] if column d depends only on column d of the choice that made the rows. An
  /// example's loss is the sum of all its costs.
  void cost(RowsPtr rows, Var<T> loss);
  /// Reports the network's predicted labels of `rows`, for metrics.
  void predict(RowsPtr rows, std::vector<int> label) { predictions_.push_back({std::move(rows), std::move(label)}); }

  /// Makes models compute every row separately, even rows with equal histories: for checks and benchmarks.
  void use_independent_rows() { unshared_ = true; }

  // Read by surrogates, metrics and dumps
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Cost>& costs() const { return costs_; }
  const std::vector<Prediction>& predictions() const { return predictions_; }
  /// Log probability of hard choice `step` under the distribution it was drawn from, for the rows after it: [R', 1] summed over
  /// the columns, or [R', D] if they answered side by side. Computed once, on demand.
  Var<T> log_probability(int step) { return log_probability(step, terms_.drawn_from); }
  Var<T> log_probability(int step, DrawnFrom of);
  /// The same by column [R', D], including spare columns (Choice::padding_mask).
  Var<T> log_probability_by_column(int step) { return log_probability_by_column(step, terms_.drawn_from); }
  Var<T> log_probability_by_column(int step, DrawnFrom of);
  /// The sum of the log probabilities of all choices on the path to `rows` [R, 1]; zeros at the root.
  Var<T> path_log_probability(const RowsPtr& rows) { return path_log_probability(rows, terms_.drawn_from); }
  Var<T> path_log_probability(const RowsPtr& rows, DrawnFrom of);
  const TargetTerms& terms() const { return terms_; }
  /// Model rows evaluated: the rows after each choice, summed over the choices. The unit of computational cost. Those of the
  /// runs that it behaves as and refers to count, too.
  std::size_t rows_evaluated() const;
  /// Attention values computed: entries of all score matrices, [R, S] each; a chosen number counts as one.
  std::size_t attention_values() const;

 private:
  /// The distribution `of` a step whose choice has a log probability; a Bug otherwise.
  const Distribution<T>& with_probability(int step, DrawnFrom of) const;
  /// Adds a divergence to the costs, times `weight`.
  void diverge(const RowsPtr& rows, Var<T> value, double weight);
  struct CachedLogProb {
    const Rows* rows;
    DrawnFrom of;
    Var<T> value;
  };

  Tape<T>& tape_;
  Handler<T>& handler_;
  RowsPtr root_;
  TargetTerms terms_;
  Feeding feeding_ = Feeding::teacher_forced;
  Observer<T>* observer_ = nullptr;
  CostWeights cost_weights_ = CostWeights::unknown;
  bool unshared_ = false;
  int nodes_ = 32;
  std::shared_ptr<const Episode> behaves_as_, refers_to_;  // null: none
  std::vector<Step> steps_;
  std::vector<Cost> costs_;
  std::vector<Prediction> predictions_;
  std::vector<CachedLogProb> picked_, picked_by_column_, paths_;
};

extern template class Episode<float>;
extern template class Episode<double>;

}  // namespace hardgrad
