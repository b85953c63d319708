// Draws the replicates of a measurement in TBB, and measures the cost of one. Sums do not depend on the number of threads:
// blocks are added in order. Throws Interrupted if `stop` asks for it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/random/key.hpp"
#include "experiments/measurement/defensive_mixture.hpp"
#include "experiments/measurement/estimate_cost.hpp"
#include "experiments/measurement/paths.hpp"
#include "experiments/measurement/replicate_sums.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

/// Cost of one replicate, on average.
struct Cost {
  EstimateCost estimate = {};
  double seconds = 0;                                           ///< wall time, without the statistics
  Ratios ratios = {};                                           ///< of the samples, if a behaviour policy draws them
  std::vector<std::pair<std::string, std::size_t>> sites = {};  ///< for draws at the logits: LogitGradients::sites
};

/// `share` x one + (1 - share) x other.
Cost mixed(const Cost& one, const Cost& other, double share);

/// The draws with a rare option in a run and, off policy, its samples: the most of a few runs; and the dominant outcomes of samples
/// without replacement. paths: of the behaviour policy, if known.
template <class T>
MixturePlan mixture_plan(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Key noise,
                         std::shared_ptr<const PathLaws> paths = {});

/// Adds gradients of all parameters to the blocks that are not complete. Replicate m draws from the mixture of `peaked` draws with
/// index m (DefensiveMixture). The evaluated choices are added to `visited`, if given.
template <class T>
Cost draw(ReplicateSums& replicates, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Key noise,
          const MixturePlan& plan, const Stop& stop, Visited* visited = nullptr);

/// The same with gradients at the logits (at_logits.hpp), from the same noise; one run holds several replicates.
template <class T>
Cost draw_at_logits(ReplicateSums& replicates, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                    Key noise, const MixturePlan& plan, const Stop& stop);

}  // namespace hardgrad::measurement
