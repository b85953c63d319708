// Files of results: merged from cells, checked, and written as tables of text.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "experiments/storage/archive.hpp"
#include "experiments/storage/cell.hpp"

namespace hardgrad::storage {

struct MergeSettings {
  std::string configuration = {};    ///< the sweep as TOML; empty: the first cell's
  std::string plan_hash = {};        ///< empty: the cells'
  std::set<std::string> tuned = {};  ///< axes from [tune], which are not axes of the grid
  std::size_t planned = 0;           ///< cells in the plan; fewer records: status "incomplete"; 0: the number of records
  std::size_t block = 0;             ///< cells in memory at a time; 0: as many as have half a million numbers
};

/// The result over axes run, step, evaluation_step, measurement_step, parameter_group, target, bound; NaN where a run has no
/// number. results/README.md describes every variable. Runs keep the given order. Trials of a search for settings are in a
/// separate group, `tuning`, with its own axes, so that they are not mistaken for results. InputError if cells belong to
/// different plans, or two are the same.
Archive merge(const std::vector<CellRecord>& records, const MergeSettings& settings = {});

/// f(record) for each cell, the same ones each time that it is called.
using EachCell = std::function<void(const std::function<void(CellRecord&&)>&)>;
/// Writes the same result atomically, chunked with shuffle and gzip. The cells are read twice, and only a block
/// of them is in memory at a time. Returns their number.
std::size_t write_merged(const std::string& path, const EachCell& cells, const MergeSettings& settings = {});
std::size_t write_merged(const std::string& path, const std::vector<CellRecord>& records, const MergeSettings& settings = {});

/// The faults of a file of cells, or of a result, gradient, checkpoint or unfinished cell, in words, one line each (starting
/// with the path); empty if it has none.
std::vector<std::string> check_file(const std::string& path);

/// Writes runs.csv, training.csv, evaluations.csv, measurements.csv, measurement_groups.csv,
/// measurement_targets.csv of a result into a folder, if it has such data; creates the folder if needed. Tables are tidy: one
/// row per run and label, missing numbers empty. Returns the paths. InputError, UsageError.
std::vector<std::string> export_csv(const std::string& path, const std::string& folder);

}  // namespace hardgrad::storage
