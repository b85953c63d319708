// Gradients at the logits: what an estimator's noise is before the network spreads it over parameters.
//
// (Of numbers: at the parameters of their distribution, means and log scales. Where choices are drawn from a posterior: at
// those of the prior, then at its own.) With respect to an offset of the logits of every choice, example and option, the same
// whatever was chosen before: the sum over the rows of an example of d / d logits. Nothing below the logits is worked out
// backward, and replicates are rows of one run (core/models/parts/replicates.hpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/random/key.hpp"

namespace hardgrad::measurement {

struct LogitGradients {
  /// [M][sum over choices of B D S] of the mean over the batch, choice by choice; of Normals B D means, then B D log scales
  std::vector<std::vector<double>> of_replicate;
  /// The sites of these entries: name and number of entries, in order.
  std::vector<std::pair<std::string, std::size_t>> sites;
  double rows = 0, attention_values = 0, missed_hints = 0;  ///< of all replicates
};

/// Replicates [first, first + count), each with the noise it has as a gradient of its own: key noise / m. `tape`: new, or of an
/// earlier call for the same model with the same parameters.
template <class T>
LogitGradients gradients_at_logits(Tape<T>& tape, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                                   Key noise, int first, int count);

/// The exact one of a target. UsageError if there are more than `leaf_cap` terms.
template <class T>
std::vector<double> exact_gradient_at_logits(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap);

}  // namespace hardgrad::measurement
