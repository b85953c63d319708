// Registry entries by name, and as JSON: for list, describe, and the Python package.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/models/model.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::cli {

nlohmann::json to_json(const Value& value);
nlohmann::json entry_json(const EstimatorEntry& entry);
nlohmann::json entry_json(const ModelEntry& entry);
nlohmann::json entry_json(const tasks::TaskEntry& entry);
nlohmann::json entry_json(const TargetEntry& entry);
/// The names an estimator has elsewhere (core/registry/known_as.hpp); those of all, if none is named.
nlohmann::json names_json(const std::string& estimator = {});

/// Whether an estimator with its defaults works on a kind of network.
struct Support {
  std::string network;
  std::string reason;          ///< why not; empty if it does
  std::optional<double> rows;  ///< then, as stated_rows, if its cost is a formula
};
std::vector<Support> support(const EstimatorEntry& entry);
/// What an estimator claims with all settings at their defaults.
bool unbiased(const EstimatorEntry& entry);
/// The settings that alone, with all else at its default, make it claim the other: "normalise=true".
std::vector<std::string> decisive_settings(const EstimatorEntry& entry);

using AnyEntry = std::variant<const EstimatorEntry*, const ModelEntry*, const tasks::TaskEntry*, const TargetEntry*>;
/// All of a name, or of a whole spec, whose name counts; `kind:name` narrows the search. Targets, and the names estimators have
/// elsewhere, are looked for where there is nothing else. UsageError if there is none; `also`: what else may have been meant.
std::vector<AnyEntry> entries_named(const std::string& text, std::vector<std::string> also = {});

}  // namespace hardgrad::cli
