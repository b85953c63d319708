// Verification of estimators, models and tasks. All checks are counted and seeded: the verdict is reproducible.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/registry/settings.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::verification {

struct Check {
  enum class Outcome { passed, failed, skipped };
  std::string what;   ///< for example "exact mean"
  std::string where;  ///< the network, or the task
  Outcome outcome = Outcome::passed;
  std::string detail;  ///< figures, or the reason for failing or skipping
};

struct Verdict {
  std::string noun;  ///< kind of the verified object: "estimator", "model" or "task"
  std::string name;  ///< its spec as given
  std::vector<Check> checks;
  bool unbiased = true;  ///< an estimator's claim with these settings; if false, bias is reported, not judged
  bool passed() const { return count(Check::Outcome::failed) == 0 && count(Check::Outcome::passed) > 0; }
  int count(Check::Outcome outcome) const {
    return static_cast<int>(std::count_if(checks.begin(), checks.end(), [&](const auto& c) { return c.outcome == outcome; }));
  }
};

inline std::string to_string(Check::Outcome outcome) {
  switch (outcome) {
    case Check::Outcome::passed: return "passed";
    case Check::Outcome::failed: return "failed";
    case Check::Outcome::skipped: return "skipped";
  }
  return "";
}

/// The result of `check`; if it throws, the exception's message, since a check that throws has failed.
inline std::string guarded(const std::function<std::string()>& check) {
  try {
    return check();
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// Checks an estimator: its contract, exact moments and invariances, on small networks. Runs every check on the estimator of
/// the spec. Throws UsageError if there is no such estimator or its parameters are wrong.
///
/// contract       an estimate is finite and reproducible in both precisions, does not change the learned state, and does not
///                depend on the number of threads; the estimate of a batch and its reported loss are the means of its
///                examples', unless these are coupled. Or a reason is given.
/// exact mean     every outcome visited: if the estimator claims to be unbiased, the mean equals its target's gradient, to
///                1e-10 of its largest entry (1e-8 with quadrature); otherwise the bias is reported. If outcomes are too many,
///                it is sampled: 20,000 draws, 4,000 for a further target or setting, 2,000 for a bias that is not judged.
///                Also on one choice of 2 to 7 options, and of 4 options with other settings: integers at 2, 3, 5 and 8, real
///                numbers at half and twice their value.
/// truth          the exact gradient is the slope of the target's value (central differences, 1e-5).
/// reported loss  if it is exact and the estimator claims to be unbiased: its mean is the target's value.
/// promises       the declarations of the entry (core/estimator/promises.hpp), by exact moments on the smallest networks.
/// moments        with twice the samples the mean is right, too, and the variance of 4,000 draws agrees with the exact one
///                (within an interval at the level .9999).
/// shift          with a constant added to every loss the mean is still right: 10, and where it is exact 1000 and -1000.
/// settings       contract, mean and loss again with each flag inverted, and with each other choice of a setting.
///
/// A check that throws has failed; NaN throws. With `to_the_first_failure`, no check runs after the first one (of one kind on
/// one network) that fails. `quick`: a tenth of the draws where outcomes are too many for an exact mean; no other numbers,
/// targets and settings, and no whole models. Interrupted if `stop` returns true.
Verdict verify(const Spec& spec, bool to_the_first_failure = false, bool quick = false, const Stop& stop = {});

/// Checks that a model keeps its declarations, and that its rows do not influence each other. Runs every check
/// (model_checks.hpp) of the model, in double, at parameters moved away from their start, on a few examples of the task.
/// Without a task: on its small scenes (scenes.hpp), whose settings the spec overrides; if it has none, on a task whose
/// default model it is. UsageError if there is no such model, no such task, or they do not fit.
Verdict verify_model(const Spec& model, const std::optional<Spec>& task = {}, bool to_the_first_failure = false);

/// Checks that a task fits models and trainers. Runs every check on the first examples of each split. UsageError if there is
/// no such task or its parameters are wrong; InputError if its files cannot be read.
///
/// fields      Every field has a line for each example and holds finite numbers; there is one id per example.
/// ids         Ids are unique over all splits. The number of training examples that also occur in another split is reported.
/// order       An example does not depend on its place in a batch, and is the same if it is requested twice.
/// padding     An example alone equals the same example padded among longer ones.
/// seed        The same key makes the same data. The effect of another key is reported.
/// training    Training batches have the ids of the measured ones, and depend only on the epoch's key.
/// dimensions  The default model can be made from them, and runs on every split with finite losses. Metrics have distinct
///             names, and finite values for its answers.
Verdict verify_task(const Spec& task, bool to_the_first_failure = false);

}  // namespace hardgrad::verification
