// An estimator: a chooser plus a surrogate. It knows neither the network nor the task.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/choice/episode.hpp"
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
  bool learning = false;  ///< the estimator's own parameters are being trained: Estimate::own_loss is wanted
};

/// One estimate. Its gradient is that of `surrogate`; the surrogate's own value means nothing.
template <class T>
struct Estimate {
  Var<T> surrogate;  ///< [1, 1]
  /// [1, 1] loss of the estimator's own parameters; depends on no model parameter. Empty if nothing is learned.
  Var<T> own_loss = {};
  std::unique_ptr<Episode<T>> episode = {};  ///< the run it rests on: for dumps, metrics and cost
  std::vector<std::unique_ptr<Episode<T>>> others = {};  ///< further runs, which cost too
  double loss = 0;                           ///< the loss seen (mean over examples and samples): what training logs
  std::vector<double> observed = {};         ///< statistics for `learn`, in a layout of the estimator's own

  /// Model rows evaluated, and attention values computed, by all runs.
  double rows() const { return total([](const auto& run) { return run.rows_evaluated(); }); }
  double attention_values() const { return total([](const auto& run) { return run.attention_values(); }); }
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
  virtual Target target() const { return {}; }
  /// One estimate of the gradient of the mean over the batch of the target. Const: learned state is frozen, so that
  /// replicates can be drawn at one point.
  virtual Estimate<T> estimate(const Problem<T>& problem) const = 0;

  /// Called once after each training step with what `estimate` returned: averages are updated here, after use.
  virtual void learn(const Estimate<T>&) {}
  /// Numbers of the learned state that are no parameters (averages), saved with a run.
  virtual std::vector<double> state() const { return {}; }
  virtual void restore(const std::vector<double>&) {}
  /// Parameters of the estimator's own networks, trained on `own_loss` by their own optimiser.
  ParameterSet<T>& own_parameters() { return own_; }
  const ParameterSet<T>& own_parameters() const { return own_; }
  /// True if its samples may be permuted without changing the estimate: lets exact moments visit multisets.
  virtual bool exchangeable() const { return true; }

 protected:
  ParameterSet<T> own_;
};

/// An estimator's entry in the registry.
struct EstimatorEntry {
  static constexpr const char* noun = "estimator";
  std::string name;
  std::string summary;  ///< one line
  std::string paper;    ///< citation
  Target::Kind target = Target::Kind::expected_loss;
  bool unbiased = true;     ///< for its own target
  /// Settings that cost it that: true if these do. Null if none do.
  bool (*biased_by)(const Settings&) = nullptr;
  std::string evaluations;  ///< model rows per example: "1", "K", "S^T"
  std::vector<ParameterInfo> parameters = {};
  bool posterior = false;  ///< proposes from a learned posterior: the model is built with one
  /// Why it cannot work on a structure; empty if it can. Null means it works everywhere there is a choice.
  std::string (*unsupported)(const Settings&, const Structure&) = nullptr;
  std::unique_ptr<Estimator<float>> (*make_float)(const Settings&, const Structure&, Key init) = nullptr;
  std::unique_ptr<Estimator<double>> (*make_double)(const Settings&, const Structure&, Key init) = nullptr;
};
using Estimators = Registry<EstimatorEntry>;

/// The factory of an estimator template with a constructor (settings, structure, key).
template <template <class> class E, class T>
std::unique_ptr<Estimator<T>> make_estimator_of(const Settings& settings, const Structure& structure, Key init) {
  return std::make_unique<E<T>>(settings, structure, init);
}

/// What the estimator claims with these settings.
bool claims_unbiased(const Spec& spec);
/// Why the estimator cannot work on the structure; empty if it can.
std::string unsupported(const Spec& spec, const Structure& structure);
/// Makes an estimator from its spec; UsageError with the reason if it does not support the structure.
template <class T>
std::unique_ptr<Estimator<T>> make_estimator(const Spec& spec, const Structure& structure, Key init);

/// Registers estimator template E under the entry's name, for float and double.
#define HARDGRAD_ESTIMATOR(E, ...)                                                      \
  namespace {                                                                           \
  const Registration<EstimatorEntry> registered_##E([] {                                \
    EstimatorEntry entry __VA_ARGS__;                                                   \
    entry.make_float = make_estimator_of<E, float>;                                     \
    entry.make_double = make_estimator_of<E, double>;                                   \
    return entry;                                                                       \
  }());                                                                                 \
  }

}  // namespace hardgrad
