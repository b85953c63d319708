// Looks a file over, and turns results into tables of text.
#pragma once

#include <string>
#include <vector>

namespace hardgrad {

/// What is wrong with a cell, result, gradient or checkpoint file, in words, one line each (starting with the
/// path); empty if nothing is.
std::vector<std::string> check_file(const std::string& path);

/// Writes runs.csv, training.csv, evaluations.csv, measurements.csv, measurement_groups.csv,
/// measurement_targets.csv (what there is) of a result into a folder, made if need be: tidy, one row per run
/// and label, missing numbers empty. Returns the paths. InputError, UsageError.
std::vector<std::string> export_csv(const std::string& path, const std::string& folder);

}  // namespace hardgrad
