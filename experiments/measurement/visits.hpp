// Moments of an estimate of one example, or of several coupled ones, by visiting all outcomes under given rules.
#pragma once

#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/estimator/estimator.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/kinks.hpp"
#include "experiments/measurement/replay.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

inline double trace(const std::vector<double>& variances) { return std::accumulate(variances.begin(), variances.end(), 0.0); }

/// Number of complete sets of choices of all examples together.
template <class T>
double outcomes_of(const Model<T>& model, const Batch& batch, int nodes) {
  const auto each = model.outcomes(batch, nodes);
  return std::accumulate(each.begin(), each.end(), 1.0, std::multiplies<>());
}

/// Pieces of the last draw, before splitting at jumps, given the pieces of the earlier draws.
inline int inner_pieces(int pieces) { return std::max(8, 2 * pieces); }

/// The part of an estimate that is visited: one of its copies, with so many inner copies (0: as the estimator has).
struct Copies {
  bool one = false;
  int inner = 0;
};

/// The settings of the visits of an example.
struct Way {
  int nodes, level;
  Copies copies;
  bool exchangeable;  ///< samples are visited as multisets
  const Kinks& kinks;
  int pieces = 0;         ///< pieces for each standard draw; 0: one Gauss rule
  std::size_t draws = 0;  ///< standard draws in a run
};

/// A record of the draws in the runs of an example.
struct Draws {
  std::size_t standard = 0;  ///< number in each run
  bool jumps = false;        ///< an estimate jumps with the last of them
  bool alike = true;         ///< every run has only standard draws, and equally many
  void see(const Replay& replay) {
    const bool first = standard == 0;
    alike = alike && replay.only_standard() && (first || replay.standard_draws() == standard);
    standard = replay.standard_draws();
  }
  /// Adds later runs.
  void join(const Draws& later) {
    alike = alike && later.alike && (standard == 0 || later.standard == standard);
    standard = later.standard;
    jumps = jumps || later.jumps;
  }
};

/// An estimate; its gradient is written to d.
template <class T>
Estimate<T> drawn(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, Copies copies, Randomness& random,
                  Tape<T>& tape, std::vector<double>& d) {
  tape.rewind();
  auto estimate = estimator.draw(
      {.tape = tape, .model = model, .batch = example, .random = random, .one_copy = copies.one, .inner_copies = copies.inner});
  differentiate(estimate.surrogate, model.parameters(), d);
  return estimate;
}

/// Moments of one example, around `reference`. NotExact if they take more than `outcome_cap` visits. Many visits are divided over
/// the threads; the result does not depend on their number.
template <class T>
Moments visited(const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                const std::vector<double>& reference, const Way& way, double outcome_cap, bool covariance, const Stop& stop,
                Draws* draws = nullptr);

}  // namespace hardgrad::measurement
