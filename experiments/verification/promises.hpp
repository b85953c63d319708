// The networks for an estimator's promises, and the results.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/reference_gradient.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/small_models.hpp"
#include "experiments/verification/verify.hpp"

namespace hardgrad::verification {

constexpr double trial_outcome_cap = 4e5;  // most outcomes of an exact moment

/// A network for a promise.
struct TestNetwork {
  int options, columns = 1;
  double spread = 0.9;
  SmallLoss loss = {};
  bool alike = false;
  bool off_policy = false;  ///< drawn by a behaviour policy

  std::string text() const {
    return fmt::format("{} options{}{}{}{}", options,
                       columns > 1 ? fmt::format(", {} columns{}", columns, loss.per_column ? " with separate costs" : "") : "",
                       spread > 2 ? ", peaked" : "", loss.linear > 2 ? ", large losses" : "",
                       off_policy ? ", drawn by another policy" : "");
  }
};

Batch examples(std::size_t count);
inline Batch one_example() { return examples(1); }

/// An estimator on a network, and the truth.
struct Trial {
  Spec spec;
  std::unique_ptr<SmallModel<double>> model;
  std::unique_ptr<Estimator<double>> estimator;
  measurement::ReferenceGradient truth;

  measurement::Moments moments() const { return moments(*estimator); }
  measurement::Moments moments(const Estimator<double>& of) const {
    return measurement::exact_moments(of, *model, one_example(), truth.of_example, trial_outcome_cap);
  }
  double scale() const { return std::max(1e-3, measurement::largest(truth.gradient)); }
  Settings settings() const { return settings_of(Estimators::instance().at(spec.name), spec); }
};

/// A failure, or else a detail; both empty if the promise does not apply to the network.
using Finding = std::pair<std::string, std::string>;

inline Finding finding(bool holds, const std::string& found) { return holds ? Finding{"", found} : Finding{found, ""}; }
inline Finding within(double off, double allowed, const std::string& what) {
  return finding(off <= allowed, fmt::format("{} off by {:.1e}", what, off));
}

/// The trials of one promise; each becomes a check.
class Trials {
 public:
  Trials(const Spec& spec, const Promise& promise, std::vector<Check>& checks)
      : spec(spec), promise(promise), checks_(checks) {}

  const Spec& spec;
  const Promise& promise;
  bool any() const { return any_; }
  /// The estimator with the settings of the promise.
  Spec tested() const;

  /// Adds a check, which has failed if `failure` is not empty.
  void add(const std::string& where, const std::string& failure, const std::string& detail = "");
  void skip(const std::string& where, const std::string& why);

  /// Empty (a skipped check) if the estimator does not support the network.
  std::optional<Trial> make(const TestNetwork& network, const Spec& tested);
  void on_networks(const std::vector<TestNetwork>& where, const std::function<Finding(const Trial&)>& check);

 private:
  std::vector<Check>& checks_;
  bool any_ = false;
};

// By exact moments (promise_moments.cpp).
Finding mean(const Promise&, const Trial&);
Finding advantages(const Promise&, const Trial&);
Finding unbiased(const Trial&);
Finding variance(const Promise&, const Trial&);
Finding same_moments(const Promise&, const Trial&);
Finding less_variance(const Promise&, const Trial&);

// On the limit of a setting (promise_limits.cpp).
void consistent(Trials&);
void limit(Trials&);
void best_constant(Trials&);

// With constant, linear or shifted losses (promise_losses.cpp).
void noiseless(Trials&);
void unshifted(Trials&);

// On estimators that train own parameters (promise_learning.cpp).
Finding descends_square(const Trial&);

// Checks that an estimator keeps the promises of its entry.

/// One check for each promise and each small network that tests it. A promise that no network could test has failed.
/// With `to_the_first_failure`, promises after the first broken one are not checked.
std::vector<Check> keeps_promises(const Spec& spec, bool to_the_first_failure = false);

}  // namespace hardgrad::verification
