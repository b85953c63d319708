// Sleep-phase samples (Hinton, Dayan, Frey & Neal 1995): a model draws its choices from the prior and its observations from its
// own predictions. A model may implement this interface besides Model; only wake-sleep needs it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/models/model.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// The message where a model without dreams is asked for them.
inline constexpr const char* lacks_dreams = "the model predicts no labels, so it cannot dream";

/// A model whose observations are sequences of labels that it can draw. With an Episode::observer a run passes every prediction
/// to the observer instead of a cost.
struct AnswerSampler {
  int labels = 0;       ///< number of classes of a label
  int places = 1;       ///< most labels in a sequence: 1, or the length of a sentence
  int last_label = -1;  ///< the label that ends a sentence
  virtual ~AnswerSampler() = default;
  /// The batch with its observations replaced by drawn ones [place][B] (-1 beyond an example's last).
  virtual Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const = 0;
};

template <class T>
struct Dream {
  Batch batch;                            ///< the batch with dreamt observations
  std::vector<std::vector<int>> choices;  ///< [step][B] the choices of the dream, which another run can be forced to make
  std::unique_ptr<Episode<T>> episode;    ///< the recorded run
};

/// One dream per example, with the random draws of sample `replica`. An observation is draw 1 of its place.
template <class T>
Dream<T> dream(const Model<T>& model, const Batch& batch, Tape<T>& tape, Randomness& random, int replica);

/// Calls f with every possible observation [place][B], the same for all examples of the batch.
void for_every_observation(const AnswerSampler& sampler, int examples,
                           const std::function<void(const std::vector<std::vector<int>>&)>& f);
/// The number of possible observations.
double observations(const AnswerSampler& sampler);

}  // namespace hardgrad
