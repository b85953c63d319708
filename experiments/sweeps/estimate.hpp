// What a sweep will cost, from short trials.
#pragma once

#include <vector>

#include "experiments/sweeps/plan.hpp"

namespace hardgrad::sweeps {

struct CostEstimate {
  double seconds = 0;       ///< wall clock, with the jobs asked for
  double core_seconds = 0;  ///< on one core
  double longest = 0;       ///< seconds of the longest cell
  double bytes = 0;         ///< of the cells' files and checkpoints
  std::size_t kinds = 0;    ///< different (task, model, estimator)
  std::size_t tried = 0;    ///< of these, tried
  bool at_least = false;    ///< a trial had to be cut short: it takes longer than said
};

/// Tries each (task, model, estimator) once, for a moment: some steps, a part of an evaluation and of a measurement, and
/// the file. Steps, replicates, examples and points of measurement of each cell are then multiplied out. The trials
/// take at most about `budget` seconds; kinds that are left then are taken for the mean of their like.
CostEstimate estimate_cost(const Plan& plan, const std::vector<const Cell*>& cells, TaskPool& tasks, int jobs, double budget);

}  // namespace hardgrad::sweeps
