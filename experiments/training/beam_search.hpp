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

/// The sentences of each example with the largest log-probabilities, not divided by length, among those found with `width`
/// prefixes: at least one and at most `most`, the most probable first. `handler` makes the choices of each prefix: one row each,
/// or all choices (EnumerateHandler), over which the probabilities of the next label are summed, as in the marginal likelihood
/// (Wu, Shapiro & Cotterell 2018, sec. 4). A sum needs choices that change no later ones (why_no_exact_posterior).
/// Sentences with labels in `never`, and sentences of probability 0, are left out (these unless no other is left). If `width`
/// covers all prefixes, these are the network's most probable sentences. UsageError if the network does not generate sentences.
template <class T>
std::vector<std::vector<Found>> beam_search(const Model<T>& model, const Batch& batch, Handler<T>& handler, int width,
                                            Tape<T>& tape, int most = 1, const std::vector<int>& never = {});

}  // namespace hardgrad::training
