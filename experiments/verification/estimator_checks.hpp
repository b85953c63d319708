// The single checks of an estimator on a network.
#pragma once

#include <optional>
#include <string>

#include "core/estimator/estimator.hpp"
#include "core/estimator/target.hpp"
#include "core/registry/settings.hpp"
#include "experiments/measurement/truth.hpp"
#include "experiments/verification/test_models.hpp"

namespace hardgrad::verification {

constexpr double outcome_cap = 3e4;  ///< of one exact mean

// estimator_contract.cpp
/// What is wrong with its estimates: not finite or reproducible, the learned state moved, a batch that is not the mean of its
/// examples, or numbers that depend on threads. Empty if nothing is.
template <class T>
std::string broken_contract(const Spec& spec, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch);

/// What a check found, and whether it is as it has to be.
struct Found {
  bool right;
  std::string detail;
};

// estimator_truth.cpp
/// The exact truth of a target on a batch of a test network. One process works it out once: every estimator of the target is
/// held to the same. NotExact where outcomes are too many.
const measurement::Truth& truth_of(const Target& target, const TestModel& tested, const Batch& batch);
/// The enumerated gradient of its target is that of the enumerated value, along one direction: by central differences, to 1e-5.
/// None of a field, and where outcomes are too many.
std::optional<Found> slope_of_value(const Target& target, const TestModel& tested);

// estimator_moments.cpp
/// The mean of the first example's estimates is the truth, if it is to be `unbiased`, and their exact variance lies in the
/// interval that draws give. None where it cannot be told; `why` then says so, if it was empty.
std::optional<Found> moments_beside_draws(const Spec& spec, bool unbiased, const TestModel& tested, std::string& why);

}  // namespace hardgrad::verification
