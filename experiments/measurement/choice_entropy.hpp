// Entropy of a network's choices: how undecided it is.
#pragma once

#include <map>
#include <string>

#include "core/estimator/estimator.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

struct ChoiceEntropy {
  double mean = 0;                        ///< over all choices
  std::map<std::string, double> by_site;  ///< over the choices of one site
};

/// Mean entropy of one choice, in nats (Shannon 1948). For each example, the entropy H[p(z)] of all its choices together (by
/// the chain rule the expected sum of the entropies of p(z_t | z_<t)) is divided by its expected number of choices. The mean
/// runs over the examples that choose at all. A row with a single option (padding) is not a choice. NaN if no example chooses.
///
/// For numbers it is the differential entropy of a column, which may be negative; it is taken along sampled paths if choices
/// feed later ones. p is the network's softmax (not a learned posterior), or its entmax for target `sparsemax`. For target
/// `soft` the entropies are taken along the one run that is fed with expected choices. If choices feed later ones, all prefixes
/// are enumerated, provided that no example has more than `leaf_cap` sets of choices. Otherwise 64 paths an example are
/// sampled, keyed by `noise` (NaN for sparsemax). `stop` is polled between examples.
template <class T>
ChoiceEntropy choice_entropy(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap, Key noise,
                             const Stop& stop = {});

}  // namespace hardgrad::measurement
