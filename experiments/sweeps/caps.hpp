// Cells that cannot fit the caps on their costs: known before they run, so that they are skipped instead of failing in every run.
#pragma once

#include <memory>
#include <string>

#include "experiments/sweeps/plan.hpp"

namespace hardgrad::sweeps {

/// Whether a gradient may take more rows than the estimator's `cap`, by its stated cost (Cell::rows), or whether moments are exact,
/// with a cap of their own. `questions`: of the model.
bool may_exceed_caps(const Cell& cell, int questions);

/// Why the first training gradient takes more rows than `cap`, or the first exact measurement more visits than
/// measure.outcome_cap; empty if they fit. They are tried, as far as that shows it.
std::string why_over_caps(const Cell& cell, const std::shared_ptr<const tasks::Task>& task, const CellKeys& keys);

}  // namespace hardgrad::sweeps
