// Many cells become one labelled file.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/storage/cell.hpp"

namespace hardgrad::storage {

struct MergeSettings {
  std::string configuration;         ///< the sweep as TOML; empty: the first cell's
  std::string plan_hash;             ///< empty: the cells'
  std::set<std::string> tuned = {};  ///< axes that [tune] filled in: no axes of the grid
  std::size_t planned = 0;           ///< cells in the plan: fewer records make the status "incomplete"; 0: as many as there are
};

/// Cells on their way into one result. Of each it keeps what the result shows of it: memory follows the result, not the cells'
/// files.
class Merger {
 public:
  explicit Merger(MergeSettings settings = {}) : settings_(std::move(settings)) {}
  /// InputError if the cell is of another plan than the others, or is there already.
  void add(CellRecord record);
  std::size_t cells() const { return records_.size() + trials_.size(); }
  /// InputError if there are none.
  Archive result() &&;

 private:
  using Provenance = std::map<std::string, std::string>;
  Provenance merge_provenance(Dataset& data) const;

  MergeSettings settings_;
  std::vector<CellRecord> records_, trials_;
  std::set<std::string> hashes_;
  std::vector<Provenance> provenances_;  // distinct ones: there are as many as machines and builds
  std::vector<std::size_t> made_by_;     // cell that is reported -> which of them
};

/// The result over axes run, step, evaluation_step, measurement_step, parameter_group, target, bound; NaN
/// where a run has no number. results/README.md describes every variable. Runs stand in the order given.
/// Trials of a search for settings stand in a group of their own, `tuning`, with axes of its own: nobody takes them for
/// results. InputError if cells belong to different plans, or two are the same.
Archive merge(const std::vector<CellRecord>& records, const MergeSettings& settings = {});
/// Writes the result atomically, chunked with shuffle, gzip and fletcher32.
void write_merged(const std::string& path, Merger merger);
void write_merged(const std::string& path, const std::vector<CellRecord>& records, const MergeSettings& settings = {});

}  // namespace hardgrad::storage
