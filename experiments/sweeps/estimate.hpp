// Estimates the cost of a sweep from short trials.
#pragma once

#include <vector>

#include "experiments/sweeps/plan.hpp"

namespace hardgrad::sweeps {

struct CostEstimate {
  double seconds = 0;       ///< wall clock, with the requested jobs
  double core_seconds = 0;  ///< on one core
  double longest = 0;       ///< seconds of the longest cell
  double bytes = 0;         ///< of the cells' files and checkpoints
  std::size_t kinds = 0;    ///< different (task, model, estimator)
  std::size_t tried = 0;    ///< of these, tried
  bool at_least = false;    ///< a trial was cut short, so the estimate is a lower bound
};

/// Tries each (task, model, estimator) once, briefly: some steps, parts of an evaluation and of a measurement, and the file.
/// It then scales these to the steps, replicates, examples and measurements of each cell. The trials take at most about
/// `budget` seconds; untried kinds count as the mean of similar kinds.
CostEstimate estimate_cost(const Plan& plan, const std::vector<const Cell*>& cells, TaskPool& tasks, int jobs, double budget);

}  // namespace hardgrad::sweeps
