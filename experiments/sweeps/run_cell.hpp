// One cell of a plan: train and measure.
#pragma once

#include <string>

#include "experiments/storage/cell.hpp"
#include "experiments/sweeps/plan.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad {

/// Runs one cell: trains and measures. Interrupted passes through; what else goes wrong becomes a failed
/// record. `checkpoint`: where parameters are saved at the end if the cell's settings ask for it.
CellRecord run_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, const std::string& checkpoint, const Stop& stop);

}  // namespace hardgrad
