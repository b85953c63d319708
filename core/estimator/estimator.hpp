// An estimator: a chooser plus a surrogate. It knows neither the network nor the task.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/estimator/needs.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/target.hpp"
#include "core/models/model.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// What one gradient is taken of.
template <class T>
struct Problem {
  Tape<T>& tape;
  const Model<T>& model;
  const Batch& batch;
  Randomness& random;
  bool learning = false;   ///< the estimator's own parameters are being trained: Estimate::own_loss is wanted
  TargetTerms terms = {};  ///< of the target: Estimator::draw sets them
  int nodes = 0;           ///< of a quadrature that stands in for an enumeration; 0: as Structure::nodes
  bool one_copy = false;   ///< of an estimate that is the mean of Estimator::copies, one is wanted
  int replicates = 1;      ///< that the batch holds beside each other: of each the cap is as for one alone
  double cap = std::numeric_limits<double>::infinity();  ///< most rows of one run: Estimator::draw sets it

  /// Runs the model under the target: choices are drawn from its distribution, and it adds to the costs. `weights`: what is
  /// known beforehand of the surrogate's slopes in the costs. NotExact if it takes more rows than the cap.
  std::unique_ptr<Episode<T>> run(Chooser<T>& chooser, CostWeights weights = CostWeights::unknown) const;
};

/// One estimate. Its gradient is that of `surrogate`; the surrogate's own value means nothing.
template <class T>
struct Estimate {
  Var<T> surrogate;  ///< [1, 1]
  /// [1, 1] loss of the estimator's own parameters; depends on no model parameter. Empty if nothing is learned.
  Var<T> own_loss = {};
  std::unique_ptr<Episode<T>> episode = {};              ///< the run it rests on: for dumps, metrics and cost
  std::vector<std::unique_ptr<Episode<T>>> others = {};  ///< further runs, which cost too
  /// The loss seen (mean over examples and samples): what training logs. Of an unbiased estimator its mean is the target's
  /// value, or that of the target which this names as reported.
  double loss = 0;
  std::vector<double> observed = {};  ///< statistics for `learn`, in a layout of the estimator's own

  /// Model rows evaluated, and attention values computed, by all runs.
  double rows() const {
    return total([](const auto& run) { return run.rows_evaluated(); });
  }
  double attention_values() const {
    return total([](const auto& run) { return run.attention_values(); });
  }
  /// Sum of count(run) over all runs.
  template <class F>
  double total(F count) const {
    auto sum = static_cast<double>(count(*episode));
    for (const auto& other : others) sum += static_cast<double>(count(*other));
    return sum;
  }
};

template <class T>
class Estimator {
 public:
  virtual ~Estimator() = default;
  /// One estimate of the gradient of the mean over the batch of the target. Const: learned state is frozen, so that
  /// replicates can be drawn at one point.
  Estimate<T> draw(Problem<T> problem) const {
    problem.terms = target().terms();
    problem.cap = cap_ * problem.replicates;
    return estimate(problem);
  }
  const Target& target() const { return target_; }
  void aim(Target target) { target_ = std::move(target); }
  /// Most rows that one run of an estimate may evaluate.
  void limit_rows(double cap) { cap_ = cap; }

  /// Called once after each training step with what `estimate` returned: averages are updated here, after use.
  virtual void learn(const Estimate<T>&) {}
  /// Numbers of the learned state that are no parameters (averages), saved with a run.
  virtual std::vector<double> state() const { return {}; }
  virtual void restore(const std::vector<double>&) {}
  /// Parameters of the estimator's own networks, trained on `own_loss` by their own optimiser.
  ParameterSet<T>& own_parameters() { return own_; }
  const ParameterSet<T>& own_parameters() const { return own_; }
  /// False if its samples may not be permuted without changing the estimate: exact moments then visit them in every order, not
  /// as multisets. Of an estimator that does not say so it is tried with a few draws.
  virtual bool exchangeable() const { return true; }
  /// An estimate is the mean of so many independent copies of one, which it is itself with Problem::one_copy: the moments are
  /// then those of one, the covariance divided.
  virtual int copies() const { return 1; }
  /// True if what an example gives depends on the others of its batch, as the entry says: an estimate is then no mean of its
  /// examples', and its moments are those of whole batches.
  bool couples_examples() const { return couples_examples_; }
  void couple_examples(bool coupled) { couples_examples_ = coupled; }

 protected:
  /// What an estimator is: called by `draw`.
  virtual Estimate<T> estimate(const Problem<T>& problem) const = 0;
  ParameterSet<T> own_;

 private:
  Target target_;
  double cap_ = std::numeric_limits<double>::infinity();
  bool couples_examples_ = false;
};

/// An estimator's entry in the registry.
struct EstimatorEntry {
  static constexpr const char* noun = "estimator";
  std::string name;
  std::string summary;  ///< one line
  std::string paper;    ///< citation
  /// Name of its target. Estimators of the expected loss estimate any mean over choices: see `shared_parameters`.
  std::string target = "expected_loss";
  /// The target with these settings, where it has numbers of its own. Null: the target's name is all.
  std::string (*target_of)(const Settings&) = nullptr;
  bool unbiased = true;  ///< for its own target
  /// Settings that cost it that: true if these do. Null if none do.
  bool (*biased_by)(const Settings&) = nullptr;
  bool couples_examples = false;  ///< Estimator::couples_examples
  std::string evaluations;        ///< rows of the network for each question and example, at most: "K", "S; S^T if joint"
  std::vector<ParameterInfo> parameters = {};
  /// What it needs of a model (core/estimator/needs.hpp). Empty: it works nowhere.
  std::vector<Need> needs = {};
  /// What it can be held to beside its bias (core/estimator/promises.hpp): `hardgrad test` tries each.
  std::vector<Promise> promises = {};
  /// Why these settings cannot be on a structure that has what it needs; empty if they can. Null if they always can.
  std::string (*unsupported)(const Settings&, const Structure&) = nullptr;
  /// Why the variance is infinite, by the formula, of an example with so many complete sets of choices; empty if it is not
  /// known to be. Null if it never is.
  std::string (*infinite_variance)(const Settings&, const Structure&, double outcomes) = nullptr;
  std::unique_ptr<Estimator<float>> (*make_float)(const Settings&, const Structure&, Key init) = nullptr;
  std::unique_ptr<Estimator<double>> (*make_double)(const Settings&, const Structure&, Key init) = nullptr;

  /// Why it can never be used; empty if it can.
  std::string fault() const {
    return declares_a_site(needs) ? ""
                                  : "does not declare what choices it works on, and so works on none: list its needs, e.g. "
                                    ".needs = {need::log_density}";
  }
};
using Estimators = Registry<EstimatorEntry>;

/// The factory of an estimator template with a constructor (settings, structure, key).
template <template <class> class E, class T>
std::unique_ptr<Estimator<T>> make_estimator_of(const Settings& settings, const Structure& structure, Key init) {
  return std::make_unique<E<T>>(settings, structure, init);
}

/// What the estimator claims with these settings.
bool claims_unbiased(const Spec& spec);
/// Its target with these settings.
Target target_of(const Spec& spec);
/// True if the model is to be built with a learned posterior for it.
bool wants_posterior(const Spec& spec);
/// What every estimator has beside its own parameters: `cap`, and of those of the expected loss `target` and `kl`.
std::vector<ParameterInfo> shared_parameters(const EstimatorEntry& entry);
bool is_shared(const ParameterInfo& parameter);
/// Why the estimator cannot work on the structure; empty if it can.
std::string unsupported(const Spec& spec, const Structure& structure);
/// Why its variance is infinite on an example with so many outcomes; empty if it is not known to be.
std::string infinite_variance(const Spec& spec, const Structure& structure, double outcomes);
/// Makes an estimator from its spec; UsageError with the reason if it does not support the structure.
template <class T>
std::unique_ptr<Estimator<T>> make_estimator(const Spec& spec, const Structure& structure, Key init);

/// Registers estimator template E as declared, for float and double.
#define HARDGRAD_ESTIMATOR(E, declared)                                                     \
  namespace {                                                                               \
  const Registration<EstimatorEntry> registered_##E([](EstimatorEntry entry) {              \
    for (auto& parameter : shared_parameters(entry)) entry.parameters.push_back(parameter); \
    entry.make_float = make_estimator_of<E, float>;                                         \
    entry.make_double = make_estimator_of<E, double>;                                       \
    return entry;                                                                           \
  }(declared));                                                                             \
  }

}  // namespace hardgrad
