// An estimator: a handler plus a surrogate. It is independent of the network and of the task.
#pragma once

#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/estimator/closed_form.hpp"
#include "core/estimator/needs.hpp"
#include "core/estimator/target.hpp"
#include "core/models/model.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// The inputs of one gradient estimate.
template <class T>
struct Problem {
  Tape<T>& tape;
  const Model<T>& model;
  const Batch& batch;
  Randomness& random;
  bool learning = false;   ///< the estimator's own parameters are trained: Estimate::own_loss is needed
  TargetTerms terms = {};  ///< of the target; set by Estimator::draw
  int nodes = 0;           ///< of the quadrature that replaces enumeration; 0: as Structure::nodes
  bool one_copy = false;   ///< draw one copy only, for an estimate that is the mean of Estimator::copies copies
  int inner_copies = 0;    ///< draw so many inner copies (Estimator::inner_copies); 0: all
  int replicates = 1;      ///< number of replicates side by side in the batch; the cap applies to each separately
  double cap = std::numeric_limits<double>::infinity();  ///< most rows of one run; set by Estimator::draw

  /// Runs the model under the target, which sets the distribution of the choices and adds terms to the costs. `weights`: a hint
  /// of the surrogate's slopes in the costs. Of the model's policies (Model::Policies), that of behaviour makes the choices where
  /// they are drawn from it, and the model repeats them; that of reference repeats the model's, if the terms need it. NotExact if
  /// a run takes more rows than the cap.
  std::unique_ptr<Episode<T>> run(Handler<T>& handler, CostWeights weights = CostWeights::unknown) const;
};

/// One estimate. Its gradient is that of `surrogate`; the surrogate's own value means nothing.
template <class T>
struct Estimate {
  Var<T> surrogate;  ///< [1, 1]
  /// [1, 1] loss of the estimator's own parameters; independent of the model's parameters. Empty if nothing is learned.
  Var<T> own_loss = {};
  std::unique_ptr<Episode<T>> episode = {};              ///< the main run: for dumps, metrics and cost
  std::vector<std::unique_ptr<Episode<T>>> others = {};  ///< further runs, which count as cost, too
  /// The mean loss over examples and samples, which training logs. For an unbiased estimator its mean is the value of the
  /// target, or of the target named by TargetEntry::reported.
  double loss = 0;
  std::vector<double> observed = {};  ///< statistics for `learn`, in an order that the estimator defines

  /// Model rows evaluated, and attention values computed, over all runs.
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
  /// One estimate of the gradient of the batch mean of the target. Const: learned state is frozen, so that replicates can be
  /// drawn at one point.
  Estimate<T> draw(Problem<T> problem) const {
    problem.terms = target().terms();
    problem.cap = cap_ * problem.replicates;
    return estimate(problem);
  }
  const Target& target() const { return target_; }
  void aim(Target target) { target_ = std::move(target); }
  /// Limits the rows that one run of an estimate may evaluate.
  void limit_rows(double cap) { cap_ = cap; }

  /// Called once after each training step with the result of `estimate`. Averages are updated here, after their use.
  virtual void learn(const Estimate<T>&) {}
  /// Learned state other than parameters (averages), saved with a run.
  virtual std::vector<double> state() const { return {}; }
  virtual void restore(const std::vector<double>&) {}
  /// Parameters of the estimator's own networks, trained on `own_loss` by a separate optimiser.
  ParameterSet<T>& own_parameters() { return own_; }
  const ParameterSet<T>& own_parameters() const { return own_; }
  /// False if permuting the samples can change the estimate. Exact moments then visit all orders instead of multisets. If true,
  /// this is still checked with a few draws.
  virtual bool exchangeable() const { return true; }
  /// Number of independent copies whose mean is the estimate; Problem::one_copy draws one of them. The moments are then those
  /// of one copy, with the covariance divided by this number.
  virtual int copies() const { return 1; }
  /// Number M of terms, independent and of one distribution given the other draws, in whose mean an estimate is linear;
  /// Problem::inner_copies draws fewer. By the law of total variance the covariance is V + W / M, known from one and two terms.
  virtual int inner_copies() const { return 1; }
  /// True if an example's estimate depends on the other examples of its batch, as declared by the entry. The moments are then
  /// those of whole batches, not of single examples.
  bool couples_examples() const { return couples_examples_; }
  void couple_examples(bool coupled) { couples_examples_ = coupled; }

 protected:
  /// Defines the estimator; called by `draw`.
  virtual Estimate<T> estimate(const Problem<T>& problem) const = 0;
  ParameterSet<T> own_;

 private:
  Target target_;
  double cap_ = std::numeric_limits<double>::infinity();
  bool couples_examples_ = false;
};

/// A published method, as values of an estimator's settings. Its name is a value of the setting `preset`.
struct Preset {
  std::string name;
  std::string settings;  ///< "advantage=group_mean,aggregation=longest"; the others have their defaults
  std::string paper;
};

struct Promise;
/// Promises of an entry. Only files that make or check them know their kinds (core/estimator/promises.hpp).
class Promises {
 public:
  Promises() = default;
  Promises(std::initializer_list<Promise> promises);
  bool empty() const { return begin() == end(); }
  const Promise* begin() const;
  const Promise* end() const;

 private:
  std::shared_ptr<const std::vector<Promise>> promises_;
};

/// An estimator's entry in the registry.
struct EstimatorEntry {
  static constexpr const char* noun = "estimator";
  std::string name;
  std::string summary;  ///< one line
  std::string paper;    ///< citation
  /// Name of its target. Estimators of the expected loss can estimate any mean over choices: see `SharedConfig`.
  std::string target = "expected_loss";
  /// Its target with these settings, if the target has settings of its own. Null: the target's name suffices.
  OfSettings<std::string> target_of = {};
  bool unbiased = true;  ///< for its own target
  /// True if these settings make the estimator biased. Null if none do.
  OfSettings<bool> biased_by = {};
  bool couples_examples = false;  ///< Estimator::couples_examples
  /// The same of these settings. Null if it depends on none.
  OfSettings<bool> couples_by = {};
  bool off_policy = false;  ///< it draws from the behaviour policy and corrects for this, if its target draws from the prior
  std::string evaluations;  ///< rows of the network per question and example, at most: "K", "S; S^T if joint"
  std::vector<ParameterInfo> parameters = {};
  std::vector<Preset> presets = {};  ///< of the setting `preset`; settings that a spec gives override those of its preset
  /// Needs of the estimator (core/estimator/needs.hpp). If empty, it works on no model.
  std::vector<Need> needs = {};
  /// Beside its bias; `hardgrad test` checks each.
  Promises promises = {};
  /// Why these settings do not work on a structure that meets the needs; empty if they do. Null if they always do.
  OfSettings<std::string, const Structure&> why_unsupported = {};
  /// Why the variance is infinite by the formula, for an example with this many complete sets of choices. Empty if it is not
  /// known to be infinite. Null if it never is.
  OfSettings<std::string, const Structure&, double> infinite_variance = {};
  /// The closed form of its estimates, if they have one (core/estimator/closed_form.hpp). Null: none, or one that is linear in the
  /// losses, which is found by asking the estimator.
  OfSettings<ClosedForm> closed_form = {};
  std::unique_ptr<Estimator<float>> (*make_float)(const Settings&, const Structure&, Key init) = nullptr;
  std::unique_ptr<Estimator<double>> (*make_double)(const Settings&, const Structure&, Key init) = nullptr;

  bool couples(const Settings& settings) const { return couples_examples || (couples_by && couples_by(settings)); }
  /// Why the entry can never be used; empty if it can.
  std::string fault() const {
    return declares_a_site(needs) ? ""
                                  : "does not declare the choices it needs, so it works on no model: list its needs, e.g. "
                                    ".needs = {need::log_density}";
  }
};
using Estimators = Registry<EstimatorEntry>;

/// The factory of an estimator template with a constructor (config, structure, key) or (settings, structure, key).
template <template <class> class E, class T>
std::unique_ptr<Estimator<T>> make_estimator_of(const Settings& settings, const Structure& structure, Key init) {
  return std::make_unique<E<T>>(SettingsArgument{settings}, structure, init);
}

/// The settings of a spec, checked. The values of its preset are the defaults of the others, also for the canonical spelling.
Settings settings_of(const EstimatorEntry& entry, const Spec& spec);
/// True if the estimator claims to be unbiased with these settings.
bool claims_unbiased(const Spec& spec);
/// Its target with these settings.
Target target_of(const Spec& spec);
/// True if the model must be built with a learned posterior.
bool wants_posterior(const Spec& spec);
/// True if it draws from the behaviour policy and corrects for this.
bool corrects_behaviour(const Spec& spec);
/// Settings of every estimator beside its own: `cap`; for estimators of the expected loss also the others.
struct SharedConfig {
  enum class Aim { expected_loss, elbo, near_reference };
  enum class Divergence { analytic, sampled };
  double cap = 1e6;
  Aim target = Aim::expected_loss;
  double near = 0.1;
  Divergence kl = Divergence::analytic;
  double kl_weight = 1;

  void declare(Fields& field);
};
/// The entry with these settings after its own, and, if it has presets, with the setting `preset` before them.
EstimatorEntry with_shared_settings(EstimatorEntry entry);
bool is_shared(const ParameterInfo& parameter);
/// Why the estimator does not work on the structure; empty if it does.
std::string why_unsupported(const Spec& spec, const Structure& structure);
/// Why its variance is infinite on an example with this many outcomes; empty if it is not known to be.
std::string infinite_variance(const Spec& spec, const Structure& structure, double outcomes);
/// Makes an estimator from its spec. UsageError with the reason if it does not support the structure.
template <class T>
std::unique_ptr<Estimator<T>> make_estimator(const Spec& spec, const Structure& structure, Key init);

/// Registers estimator template E as declared, for float and double.
#define HARDGRAD_ESTIMATOR(E, declared)                                        \
  namespace {                                                                  \
  const Registration<EstimatorEntry> registered_##E([](EstimatorEntry entry) { \
    entry.make_float = make_estimator_of<E, float>;                            \
    entry.make_double = make_estimator_of<E, double>;                          \
    return entry;                                                              \
  }(with_shared_settings(declared)));                                          \
  }

}  // namespace hardgrad
