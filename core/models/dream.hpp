// Dreams: the model draws its choices from the prior and what it is judged by from its own predictions.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/models/model.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

template <class T>
struct Dream {
  Batch batch;                            ///< the batch with dreamt observations
  std::vector<std::vector<int>> choices;  ///< [step][B] what was chosen on the way: to be forced
  std::unique_ptr<Episode<T>> episode;    ///< the run: what it cost
};

/// One dream an example, drawn at the places of sample `replica` (an observation as draw 1 of its place).
template <class T>
Dream<T> dream(const Model<T>& model, const Batch& batch, Tape<T>& tape, Randomness& random, int replica);

/// Calls f with every observation [place][B] a model with labels can make, the same for all examples of the batch.
void for_every_observation(const Structure& structure, int examples,
                           const std::function<void(const std::vector<std::vector<int>>&)>& f);
/// How many there are.
double observations(const Structure& structure);

}  // namespace hardgrad
