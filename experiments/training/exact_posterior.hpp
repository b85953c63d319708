// The exact posterior p(z | x, y) of a network's choices, given the targets of a batch.
#pragma once

#include <string>
#include <vector>

#include "core/estimator/estimator.hpp"

namespace hardgrad::training {

/// Why the posterior of each choice cannot be enumerated by itself; empty if it can: choices are options and change their own
/// costs only.
std::string why_no_exact_posterior(const Structure& structure);

/// The most probable options of the exact posterior, by enumeration of each choice [steps][asking rows D].
template <class T>
std::vector<std::vector<int>> exact_posterior_modes(Tape<T>& tape, const Model<T>& model, const Batch& batch);

}  // namespace hardgrad::training
