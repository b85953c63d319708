// A plan with [tune] grows: the outcomes of its trials determine the trials of the next round, and finally the reported runs.
// The growth depends only on finished cells, so that all processes with a common folder have the same plan.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "experiments/storage/cell.hpp"
#include "experiments/sweeps/folder.hpp"

namespace hardgrad::sweeps {

/// Changes a plan of the reported cells, without tuned settings, to one that starts with searches. UsageError if settings would
/// be chosen on the split that judges the reported runs, or by a metric that a task does not have.
void begin_searches(Plan& plan, const SweepConfig& config, TaskPool& tasks);

/// Adds the cells that the outcomes determine; known cells stay. True if there are new ones.
bool grow(Plan& plan, const Outcomes& outcomes);

/// The outcome of a finished trial by the metric of [tune].
Outcome outcome_of(const storage::CellRecord& record, const std::string& metric);

/// The outcomes of the finished trials in a folder; each file is read once.
Outcomes outcomes_in(const storage::CellStore& cells, const std::string& metric);

/// The searches for plan.json: axes, settings, rounds and chosen settings.
nlohmann::json tuning_json(const Plan& plan);

/// One line per search: the chosen setting and their number, values at an edge, failed trials. `over`: only finished searches.
std::vector<std::string> tuning_lines(const Plan& plan, bool over = false);

}  // namespace hardgrad::sweeps
