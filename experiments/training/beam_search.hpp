// Beam search over what a network says (Sutskever, Vinyals & Le 2014, sec. 3.2): the k likeliest beginnings of each sentence go
// on together, as rows of one run.
#pragma once

#include <vector>

#include "core/choice/episode.hpp"
#include "core/models/model.hpp"

namespace hardgrad::training {

/// A sentence found, without its last label, and the log probability of all its labels (that one included).
struct Found {
  std::vector<int> labels;
  double log_p;
};

/// The best sentence of each example: of those that `width` beginnings lead to the one of largest log probability, which is not
/// divided by its length. `chooser` answers what the network asks of each beginning, one row each. With as many beginnings as
/// there are, the network's most probable sentence. UsageError if the network says no sentences.
template <class T>
std::vector<Found> beam_search(const Model<T>& model, const Batch& batch, Chooser<T>& chooser, int width, Tape<T>& tape);

}  // namespace hardgrad::training
