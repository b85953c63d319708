// Samples without replacement as a race: outcome z of an example arrives at a random time, at the rate p(z), and the first k are
// the sample (Kool, van Hoof & Welling 2019, Stochastic beams and where to find them: - log of the times are perturbed log p).
#pragma once

#include <vector>

namespace hardgrad {

/// A complete set of choices.
struct Racer {
  std::vector<int> answer;  ///< in order, each as its index (Distribution::unrank)
  double log_p = 0;
};

/// The first outcomes to arrive.
struct Race {
  std::vector<Racer> outcomes;
  std::vector<double> time;  ///< of each, in any order
  double rest = 0;           ///< probability of all others
};

/// Another law of a race: one outcome is left out, and less probable ones take its place.
struct WithoutOne {
  std::vector<Racer> dominant;  ///< the last is left out; the others have the rates p
  double factor = 1;            ///< all other outcomes have the rates factor p; the sum of all rates is 1
};

}  // namespace hardgrad
