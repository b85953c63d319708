// How undecided a network is where it chooses.
#pragma once

#include <map>
#include <string>

#include "core/estimator/estimator.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

struct ChoiceEntropy {
  double mean = 0;                        ///< over all choices
  std::map<std::string, double> by_site;  ///< over those of one site alone
};

/// Mean entropy of one choice, in nats (Shannon 1948): of each example, the entropy H[p(z)] of all its choices together
/// (by the chain rule the expected sum of the entropies of p(z_t | z_<t)) over the expected number of its choices; then
/// the mean over the examples that choose at all. A row with one option is no choice: padding counts for nothing. NaN if
/// no example chooses.
///
/// Of numbers it is the differential entropy of a column (along sampled paths where they feed later ones), which may be
/// negative. p is the network's own softmax (not a learned posterior); of target `sparsemax` its sparsemax. Of target `soft`
/// the entropies are taken along the one run that is fed with expected choices. Where choices feed later ones, all prefixes are
/// enumerated if no example has more than `leaf_cap` sets of choices; else paths are sampled, 64 an example, keyed by `noise`
/// (of sparsemax: NaN). `stop` is polled between examples.
template <class T>
ChoiceEntropy choice_entropy(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap, Key noise,
                             const Stop& stop = {});

}  // namespace hardgrad::measurement
