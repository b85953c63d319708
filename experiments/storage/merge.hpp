// Many cells become one labelled file.
#pragma once

#include <string>
#include <vector>

#include "experiments/storage/cell.hpp"

namespace hardgrad {

struct MergeSettings {
  std::string configuration;  ///< the sweep as TOML; empty: the first cell's
  std::string plan_hash;      ///< empty: the cells'
  std::size_t planned = 0;    ///< cells in the plan: fewer records make the status "incomplete"; 0: as many as there are
};

/// The result over axes run, step, evaluation_step, measurement_step, parameter_group, target, bound; NaN
/// where a run has no number. results/README.md describes every variable. Runs stand in the order given.
/// InputError if cells belong to different plans, or two are the same.
Archive merge(const std::vector<CellRecord>& records, const MergeSettings& settings = {});
/// merge, then write atomically, chunked with shuffle, gzip and fletcher32.
void write_merged(const std::string& path, const std::vector<CellRecord>& records, const MergeSettings& settings = {});

}  // namespace hardgrad
