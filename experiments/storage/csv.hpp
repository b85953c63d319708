// Results as tables of text.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::storage {

/// Writes runs.csv, training.csv, evaluations.csv, measurements.csv, measurement_groups.csv,
/// measurement_targets.csv of a result into a folder, if it has such data; creates the folder if needed. Tables are tidy: one
/// row per run and label, missing numbers empty. Returns the paths. InputError, UsageError.
std::vector<std::string> export_csv(const std::string& path, const std::string& folder);

}  // namespace hardgrad::storage
