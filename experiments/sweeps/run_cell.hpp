// One cell of a plan: train and measure.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "experiments/storage/cell.hpp"
#include "experiments/storage/unfinished.hpp"
#include "experiments/sweeps/plan.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::sweeps {

/// How far a cell is.
struct CellProgress {
  int step = 0;
  double share = 0;                                    ///< of its budget
  double seconds = 0;                                  ///< wall time so far: steps, measurements, evaluations
  std::optional<double> left;                          ///< that the rest will take
  std::optional<training::LogPoint> logged;            ///< the last point
  std::optional<training::EvaluationPoint> evaluated;  ///< the last one
};

/// What a cell reads, writes and tells beside its record; empty: does not.
struct CellHooks {
  Stop stop = {};
  std::string checkpoint = {};                                ///< file of the trained network, where it is wanted
  std::string unfinished = {};                                ///< file that it goes on from, if that is of this cell
  std::function<void(const storage::Unfinished&)> save = {};  ///< writes that file
  std::function<void(const CellProgress&)> progress = {};     ///< told between steps, about once a second
};

/// Runs one cell: trains and measures. Interrupted passes through, when what there is has been saved; what else goes wrong
/// becomes a failed or skipped record.
storage::CellRecord run_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, const CellHooks& hooks);

}  // namespace hardgrad::sweeps
