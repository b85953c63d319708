// Draws the replicates of a measurement in TBB, and says what one costs. Sums are the same for any number of threads: blocks
// are added up in order, whoever filled them. Interrupted if `stop` says so.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/random/key.hpp"
#include "experiments/measurement/statistics.hpp"
#include "experiments/measurement/visited.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

/// Of one replicate, on average.
struct Cost {
  double rows = 0, attention_values = 0;
  double missed_hints = 0;                                      ///< Tape::missed_hints
  double seconds = 0;                                           ///< wall, without the statistics
  std::vector<std::pair<std::string, std::size_t>> sites = {};  ///< of draws at the logits: LogitGradients::sites
};

/// Of a share of one and the rest of the other.
Cost mixed(const Cost& one, const Cost& other, double share);

/// Gradients of all parameters, for the blocks that are not complete; the noise of replicate m is keyed by noise / m. The
/// choices they saw are added to `visited`, if there is one.
template <class T>
Cost draw(Replicates& replicates, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Key noise,
          const Stop& stop, Visited* visited = nullptr);

/// The same noise, gradients at the logits (at_logits.hpp): several replicates to a run.
template <class T>
Cost draw_at_logits(Replicates& replicates, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Key noise,
                    const Stop& stop);

}  // namespace hardgrad::measurement
