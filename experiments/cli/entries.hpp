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
/// An estimator's names elsewhere (core/registry/known_as.hpp); without a name, those of all estimators.
nlohmann::json names_json(const std::string& estimator = {});

/// Whether an estimator with its defaults supports a kind of network.
struct Support {
  std::string network;
  std::string reason;          ///< why not; empty if it does
  std::optional<double> rows;  ///< if it does and its cost is a formula: as stated_rows
};
std::vector<Support> support(const EstimatorEntry& entry);
/// Whether an estimator claims to be unbiased with all settings at their defaults.
bool unbiased(const EstimatorEntry& entry);
/// The settings that each reverse this claim, with all others at their defaults: "normalise=true".
std::vector<std::string> decisive_settings(const EstimatorEntry& entry);

using AnyEntry = std::variant<const EstimatorEntry*, const ModelEntry*, const tasks::TaskEntry*, const TargetEntry*>;
/// All entries of a name, or of a spec's name; `kind:name` narrows the search. Targets and estimators' names elsewhere are used
/// only if nothing else matches. UsageError if there is none; `also`: further names for suggestions.
std::vector<AnyEntry> entries_named(const std::string& text, std::vector<std::string> also = {});

}  // namespace hardgrad::cli
