// One cell of a plan: train and measure.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "experiments/storage/cell.hpp"
#include "experiments/storage/partial_cell.hpp"
#include "experiments/sweeps/plan.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::sweeps {

/// The progress of a cell.
struct CellProgress {
  int step = 0;
  double share = 0;                                    ///< of its budget
  double seconds = 0;                                  ///< wall time so far: steps, measurements, evaluations
  std::optional<double> left;                          ///< remaining seconds
  std::optional<measurement::LogPoint> logged;         ///< the last point
  std::optional<training::EvaluationPoint> evaluated;  ///< the last one
};

/// Input and output of a cell besides its record; empty ones are not used.
struct CellHooks {
  Stop stop = {};
  std::string checkpoint = {};                                 ///< file of the trained network, if requested
  std::string partial = {};                                    ///< file to resume from, if it belongs to this cell
  std::function<void(const storage::PartialCell&)> save = {};  ///< writes that file
  std::function<void(const CellProgress&)> progress = {};      ///< called between steps, about once a second
};

/// A cell's training before its first step and without train.start. Throws as training::prepare; InputError, UsageError if
/// train.reference does not fit.
template <class T>
training::Training<T> prepared(const Cell& cell, const std::shared_ptr<const tasks::Task>& task, const training::RunKeys& keys);

/// A record of the cell with its labels, settings and hashes, and nothing else.
storage::CellRecord labelled_record(const Plan& plan, const Cell& cell);

/// These settings for training alone, of some steps: without evaluations, measurements and other limits.
training::TrainSettings training_alone(training::TrainSettings settings, int steps);

/// Runs one cell: trains and measures. Interrupted is rethrown after the cell is saved; other exceptions give a failed or
/// skipped record.
storage::CellRecord run_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, const CellHooks& hooks);

}  // namespace hardgrad::sweeps
