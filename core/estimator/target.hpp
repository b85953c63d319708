// Targets: the objectives that estimators estimate. A target defines the distribution of the choices, its terms added to the
// costs, and its exact value on a batch small enough to enumerate. Targets are registered objects; a plugin may add one.
#pragma once

#include <string>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/registry/registry.hpp"

namespace hardgrad {

template <class T>
class Model;
template <class T>
struct Problem;
template <class T>
struct Estimate;
struct Batch;
struct TargetEntry;

/// A registered target with its settings, e.g. `importance_bound[samples=4]`.
class Target {
 public:
  /// From a spec; the default is the expected loss. UsageError if there is no such target.
  Target(const std::string& spec = "expected_loss");
  Target(const char* spec) : Target(std::string(spec)) {}
  const std::string& name() const;
  /// Name and settings: two targets with the same text are equal.
  const std::string& text() const { return text_; }
  const Settings& settings() const { return settings_; }
  const TargetEntry& entry() const { return *entry_; }
  const TargetTerms& terms() const { return terms_; }
  friend bool operator==(const Target& a, const Target& b) { return a.text_ == b.text_; }

 private:
  const TargetEntry* entry_;
  Settings settings_;
  std::string text_;
  TargetTerms terms_;
};

/// The exact form of a target, by enumeration.
template <class T>
struct ExactTarget {
  /// A surrogate with exactly the target's gradient; Estimate::loss is its value.
  Estimate<T> (*objective)(const Target&, const Problem<T>&) = nullptr;
  /// [B] number of terms in the objective's sum for each example.
  std::vector<double> (*terms)(const Target&, const Model<T>&, const Batch&) = nullptr;
};

struct TargetEntry {
  static constexpr const char* noun = "target";
  std::string name;
  std::string summary;  ///< one line, with its formula
  std::vector<ParameterInfo> parameters = {};
  OfSettings<TargetTerms> terms = {};  ///< null: choices from the prior, nothing added
  bool non_conservative =
      false;                     ///< no scalar has this gradient: network and posterior each minimise an objective of their own
  bool dreams = false;           ///< its exact form sums over the answers that the model could give
  bool rewards = false;          ///< losses must be rewards of at least 0 with the sign changed (Structure::rewards)
  bool likelihood = false;       ///< exp(-f) must be a probability of the answer (Structure::no_likelihood)
  std::string counted = "rows";  ///< name of the terms of its exact form, for messages
  /// Spec of an unbiased estimator of low variance, used for a long run where enumeration is impossible; empty if there is
  /// none. Null: none.
  std::string (*reference_estimator)(const Target&) = nullptr;
  /// Spec of the target whose value estimators report as their loss. Null: the target itself.
  std::string (*reported)(const Target&) = nullptr;
  ExactTarget<float> exact_float = {};
  ExactTarget<double> exact_double = {};

  template <class T>
  const ExactTarget<T>& exact() const;
};
using Targets = Registry<TargetEntry>;

template <>
inline const ExactTarget<float>& TargetEntry::exact() const {
  return exact_float;
}
template <>
inline const ExactTarget<double>& TargetEntry::exact() const {
  return exact_double;
}

/// `terms` for a target whose choices are drawn from the learned posterior, with nothing added to the costs.
inline TargetTerms drawn_from_posterior(const Settings&) { return {.drawn_from = DrawnFrom::posterior}; }

/// Registers a target whose exact form consists of two function templates; the tag only names the registration.
#define HARDGRAD_TARGET(tag_, objective_, terms_, declared)                        \
  namespace {                                                                      \
  const Registration<TargetEntry> registered_target_##tag_([](TargetEntry entry) { \
    entry.exact_float = {objective_<float>, terms_<float>};                        \
    entry.exact_double = {objective_<double>, terms_<double>};                     \
    return entry;                                                                  \
  }(declared));                                                                    \
  }

}  // namespace hardgrad
