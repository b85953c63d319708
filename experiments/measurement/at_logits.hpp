// Gradients at the logits: an estimator's noise before the network spreads it over the parameters.
//
// The gradient is taken with respect to one offset for each choice, example and option, shared by all earlier choices: it is
// the sum of d / d logits over the rows of an example. For numbers, it is taken at the means and log scales of their
// distribution. If choices are drawn from a posterior, the gradient at the prior's logits comes first, then that at the
// posterior's. The backward pass stops at the logits. Replicates are rows of one run (core/models/parts/replicates.hpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/random/key.hpp"
#include "experiments/measurement/defensive_mixture.hpp"
#include "experiments/measurement/estimate_cost.hpp"

namespace hardgrad::measurement {

struct LogitGradients {
  /// [M][sum over choices of B D S], gradient of the batch mean, choice by choice; for Normals B D means, then B D log scales
  std::vector<std::vector<double>> of_replicate;
  std::vector<double> weights;  ///< [M] of the replicates, see DefensiveMixture
  /// The sites of these entries, in order: name and number of entries.
  std::vector<std::pair<std::string, std::size_t>> sites;
  EstimateCost cost;  ///< of all replicates together
};

/// Replicates [first, first + count). Replicate m has the same noise as a gradient drawn alone: that of DefensiveMixture with index m
/// and `plan`. `tape`: new, or used earlier for the same model with the same parameters.
template <class T>
LogitGradients gradients_at_logits(Tape<T>& tape, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                                   Key noise, int first, int count, const MixturePlan& plan = {});

/// The exact gradient of a target at the logits. UsageError if it has more than `leaf_cap` terms.
template <class T>
std::vector<double> exact_gradient_at_logits(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap);

}  // namespace hardgrad::measurement
