// Estimates the cost of a sweep from short trials.
#pragma once

#include <optional>
#include <vector>

#include "experiments/sweeps/plan.hpp"

namespace hardgrad::sweeps {

/// Seconds that all trials of a sweep take at most, about.
constexpr double seconds_of_trials = 5;

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

/// The seconds of one cell on one core, its data loaded, by a trial of about `budget` seconds on this thread. Empty if the
/// trial fails or is cut short, also by `stop`.
std::optional<double> try_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, double budget, const Stop& stop);

}  // namespace hardgrad::sweeps
