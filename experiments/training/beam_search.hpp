// Beam search over a network's output (Sutskever, Vinyals & Le 2014, sec. 3.2): the k most probable prefixes of each sentence
// continue together, as rows of one run.
#pragma once

#include <vector>

#include "core/choice/episode.hpp"
#include "core/models/model.hpp"

namespace hardgrad::training {

/// A complete sentence without its last label, and the log-probability of all its labels, including the last.
struct Found {
  std::vector<int> labels;
  double log_p;
};

/// The sentence of each example with the largest log-probability, not divided by length, among those found with `width`
/// prefixes. `chooser` makes the choices of each prefix, one row each. If `width` covers all prefixes, this is the network's
/// most probable sentence. UsageError if the network does not generate sentences.
template <class T>
std::vector<Found> beam_search(const Model<T>& model, const Batch& batch, Chooser<T>& chooser, int width, Tape<T>& tape);

}  // namespace hardgrad::training
