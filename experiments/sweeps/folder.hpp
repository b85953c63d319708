// The folder of a sweep: plan.json, journal.jsonl, and in cells/ the finished cells, checkpoints, unfinished cells and claims;
// and the status of its cells.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/storage/cell_store.hpp"
#include "experiments/sweeps/durations.hpp"
#include "experiments/sweeps/plan.hpp"

namespace hardgrad::sweeps {

struct SweepFolder {
  std::string path;
  std::string plan() const { return path + "/plan.json"; }
  std::string journal() const { return path + "/journal.jsonl"; }
  std::string cells() const { return path + "/cells"; }
  std::string checkpoint(const std::string& hash) const { return cells() + "/" + hash + ".checkpoint.h5"; }
  /// The file of an unfinished cell, from which its next run resumes.
  std::string unfinished(const std::string& hash) const { return cells() + "/" + hash + ".unfinished.h5"; }
};

enum class CellState { pending, ok, failed, skipped, damaged, unreadable };
std::string to_string(CellState state);
/// Half-written files, and files of cells with a half-written end, of killed processes in the folder, which `run` removes.
std::vector<storage::Leftover> leftovers(const SweepFolder& folder, const storage::CellStore& cells);
/// A cell is damaged if its record is and, with `with_checkpoint`, if its checkpoint is missing or damaged; it is unreadable if its
/// record is sound, but not of a form that this program reads. Both are run again.
CellState cell_state(const storage::CellStore& cells, const std::string& hash, bool with_checkpoint = true,
                     storage::CellStore::Trial trial = storage::CellStore::Trial::whole);

/// Whether the cell is done and not run again.
bool is_done(CellState state, const Cell& cell);

/// A plan as the text of plan.json, with a checksum.
std::string frozen(const Plan& plan);
/// f(plan without cells, cell)
using EachPlanned = std::function<void(const nlohmann::json&, const nlohmann::json&)>;
/// The frozen plan, its cells one after another; returns it without them. InputError if it is missing, unreadable or does
/// not match its checksum: this is known only at the end.
nlohmann::json read_plan(const SweepFolder& folder, const EachPlanned& each);
/// The same with all cells in `cells`.
nlohmann::json read_plan(const SweepFolder& folder);

struct CellStatusLine {
  std::string hash, label;
  CellState state = CellState::pending;
  bool running = false;
  bool trial = false;       ///< of a search for settings: its failure does not fail the sweep
  std::string reason;       ///< of a failure or skip
  std::optional<int> step;  ///< where an unfinished cell resumes
};
struct SweepStatus {
  std::string name, hash;
  std::vector<CellStatusLine> cells;
  std::size_t to_come = 0;             ///< cells that [tune] will add to the plan
  std::vector<std::string> damage;     ///< CellStore::damage()
  std::optional<double> seconds_left;  ///< of work, one cell after another; empty while too little is known
  std::size_t count(CellState state) const;
  std::size_t running() const;
  std::size_t failed_trials() const;
  /// "NAME: 12 cells: 10 ok, 2 skipped, 0 failed, 0 pending, 0 at work": all cells of the plan, with trials and damaged cells.
  std::string summary() const;
};
/// The step at which an unfinished cell resumes; empty if its file is missing or unusable, so that it starts again.
std::optional<int> unfinished_step(const SweepFolder& folder, const std::string& hash);
/// Seconds of the successful cells by hash, from the journal.
std::map<std::string, double> journal_seconds(const SweepFolder& folder);
/// The status of a sweep; quick, because it opens no HDF5 file. `cells`: those of the folder.
SweepStatus sweep_status(const SweepFolder& folder, const storage::CellStore& cells);

}  // namespace hardgrad::sweeps
