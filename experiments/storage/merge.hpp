// Merges cells into one labelled file.
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
  std::set<std::string> tuned = {};  ///< axes from [tune], which are not axes of the grid
  std::size_t planned = 0;           ///< cells in the plan; fewer records: status "incomplete"; 0: the number of records
};

/// Collects cells for one result. It keeps only the parts of each cell that the result contains, so memory depends on the size
/// of the result, not of the cells' files.
class Merger {
 public:
  explicit Merger(MergeSettings settings = {}) : settings_(std::move(settings)) {}
  /// InputError if the cell belongs to another plan than the others, or was already added.
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
  std::vector<Provenance> provenances_;  // distinct ones: one per machine and build
  std::vector<std::size_t> made_by_;     // reported cell -> index in provenances_
};

/// The result over axes run, step, evaluation_step, measurement_step, parameter_group, target, bound; NaN where a run has no
/// number. results/README.md describes every variable. Runs keep the given order. Trials of a search for settings are in a
/// separate group, `tuning`, with its own axes, so that they are not mistaken for results. InputError if cells belong to
/// different plans, or two are the same.
Archive merge(const std::vector<CellRecord>& records, const MergeSettings& settings = {});
/// Writes the result atomically, chunked with shuffle, gzip and fletcher32.
void write_merged(const std::string& path, Merger merger);
void write_merged(const std::string& path, const std::vector<CellRecord>& records, const MergeSettings& settings = {});

}  // namespace hardgrad::storage
