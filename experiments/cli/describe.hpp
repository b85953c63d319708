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
/// The names an estimator has elsewhere (core/registry/known_as.hpp); those of all, if none is named.
nlohmann::json names_json(const std::string& estimator = {});
nlohmann::json entry_json(const TargetEntry& entry);

}  // namespace hardgrad::cli
