// Registry entries as JSON, for list and describe.
#pragma once

#include <nlohmann/json.hpp>

#include "core/estimator/estimator.hpp"
#include "core/models/model.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::cli {

nlohmann::json entry_json(const EstimatorEntry& entry);
nlohmann::json entry_json(const ModelEntry& entry);
nlohmann::json entry_json(const TaskEntry& entry);
nlohmann::json entry_json(const TargetEntry& entry);

}  // namespace hardgrad::cli
