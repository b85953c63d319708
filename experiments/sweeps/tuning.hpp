// A plan with [tune] grows: from what its trials came to follow the trials of the next round, and at last the runs that are
// reported. How it grows depends on the finished cells alone, so that every process that shares a folder sees the same plan.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "experiments/storage/cell.hpp"
#include "experiments/sweeps/folder.hpp"

namespace hardgrad::sweeps {

/// Makes a plan of what the sweep wants (cells with their settings open) one that begins with searches. UsageError if the
/// settings would be chosen on the split that the reported runs are judged on, or by a metric that a task has not.
void begin_searches(Plan& plan, const SweepConfig& config, TaskPool& tasks);

/// Takes in what is over. Cells already known stay; true if there are more.
bool grow(Plan& plan, const Outcomes& outcomes);

/// What a finished trial came to, by the metric that [tune] names.
Outcome outcome_of(const storage::CellRecord& record, const std::string& metric);

/// The outcomes of the trials that are over in a folder; each file is read once.
Outcomes outcomes_in(const SweepFolder& folder, const std::string& metric);

/// The searches as plan.json has them: axes, settings, rounds, and what is chosen.
nlohmann::json tuning_json(const Plan& plan);

/// A line a search: what was chosen of how many, what lies at an edge, which trials failed. `over`: of those that are over.
std::vector<std::string> tuning_lines(const Plan& plan, bool over = false);

}  // namespace hardgrad::sweeps
