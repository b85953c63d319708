// Sleep-phase samples (Hinton, Dayan, Frey & Neal 1995): a model draws its choices from the prior, and what it is judged by
// from its own predictions. An interface that a model may have besides Model; wake-sleep alone needs it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/models/model.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// How a model draws what it is judged by: labels in a row. A run with an Episode::observer hands every prediction to it
/// instead of a cost.
struct Dreams {
  int labels = 0;       ///< of so many
  int places = 1;       ///< most labels in a row: 1, or the length of a sentence
  int last_label = -1;  ///< the label that ends a sentence
  virtual ~Dreams() = default;
  /// The batch with observations [place][B] (-1 beyond an example's last) for its own.
  virtual Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const = 0;
};

template <class T>
struct Dream {
  Batch batch;                            ///< the batch with dreamt observations
  std::vector<std::vector<int>> choices;  ///< [step][B] what was chosen on the way: to be forced
  std::unique_ptr<Episode<T>> episode;    ///< the run: what it cost
};

/// One dream an example, drawn at the places of sample `replica` (an observation as draw 1 of its place).
template <class T>
Dream<T> dream(const Model<T>& model, const Batch& batch, Tape<T>& tape, Randomness& random, int replica);

/// Calls f with every observation [place][B] a model can make, the same for all examples of the batch.
void for_every_observation(const Dreams& dreams, int examples,
                           const std::function<void(const std::vector<std::vector<int>>&)>& f);
/// How many there are.
double observations(const Dreams& dreams);

}  // namespace hardgrad
