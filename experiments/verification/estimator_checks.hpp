// The single checks of an estimator on a network.
#pragma once

#include <optional>
#include <string>

#include "core/estimator/estimator.hpp"
#include "core/estimator/target.hpp"
#include "core/registry/settings.hpp"
#include "experiments/measurement/reference_gradient.hpp"
#include "experiments/verification/test_models.hpp"

namespace hardgrad::verification {

constexpr double outcome_cap = 3e4;  ///< for one exact mean

/// Reports a broken contract: a non-finite or irreproducible estimate, a changed learned state, a batch estimate that is not
/// the mean of its examples', or a dependence on the number of threads. Empty if there is none.
template <class T>
std::string broken_contract(const Spec& spec, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch);

/// The result of a check.
struct Found {
  bool right;
  std::string detail;
};

/// The exact truth of a target on a batch of a test network, computed once per process for all estimators of the target.
/// NotExact if it has too many outcomes.
const measurement::ReferenceGradient& reference_of(const Target& target, const TestModel& tested, const Batch& batch);
/// Compares the enumerated gradient of the target with the slope of its enumerated value along one direction, by central
/// differences, to 1e-5. Empty for targets that are not gradients, and if there are too many outcomes.
std::optional<Found> slope_of_value(const Target& target, const TestModel& tested);

/// Checks on the first example that the mean of the estimates is the truth (if `unbiased`), and that the exact variance lies in
/// an interval estimated from draws. Empty if neither can be computed; then `why` gives the reason, unless it has one already.
std::optional<Found> moments_beside_draws(const Spec& spec, bool unbiased, const TestModel& tested, std::string& why);

}  // namespace hardgrad::verification
