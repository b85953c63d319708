// The folder of a sweep: plan.json, cells/<hash>.h5, journal.jsonl; and what it tells about how far things
// are.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/storage/atomic_file.hpp"
#include "experiments/sweeps/durations.hpp"
#include "experiments/sweeps/plan.hpp"

namespace hardgrad::sweeps {

struct SweepFolder {
  std::string path;
  std::string plan() const { return path + "/plan.json"; }
  std::string journal() const { return path + "/journal.jsonl"; }
  std::string cells() const { return path + "/cells"; }
  std::string cell(const std::string& hash) const { return cells() + "/" + hash + ".h5"; }
  std::string checkpoint(const std::string& hash) const { return cells() + "/" + hash + ".checkpoint.h5"; }
  /// A cell on its way: what the next run of it goes on from.
  std::string unfinished(const std::string& hash) const { return cells() + "/" + hash + ".unfinished.h5"; }
};

enum class CellState { pending, ok, failed, skipped, damaged };
std::string to_string(CellState state);
/// What killed processes left half-written in it, and `run` removes.
std::vector<storage::Leftover> leftovers(const SweepFolder& folder);
/// Reads the seal of the cell's file: a file that is not whole, or of another hash, is damaged; so is a cell whose checkpoint
/// is missing or damaged, unless its numbers alone are wanted.
CellState cell_state(const SweepFolder& folder, const std::string& hash, bool with_checkpoint = true);

/// Such a cell is not run again.
bool is_done(CellState state, const Cell& cell);

/// A plan as the text of plan.json, with a checksum.
std::string frozen(const Plan& plan);
/// The frozen plan; InputError if there is none, it cannot be read, or it does not match its checksum.
nlohmann::json read_plan(const SweepFolder& folder);

struct CellStatusLine {
  std::string hash, label;
  CellState state = CellState::pending;
  bool running = false;
  bool trial = false;       ///< of a search for settings: its failure is none of the sweep
  std::string reason;       ///< of a failure or skip
  std::optional<int> step;  ///< of a cell that is not over: that it goes on from
};
struct SweepStatus {
  std::string name, hash;
  std::vector<CellStatusLine> cells;
  std::size_t to_come = 0;             ///< cells that the plan will grow by, with [tune]
  std::optional<double> seconds_left;  ///< of work, one cell after another; nothing while too little is known
  std::size_t count(CellState state) const;
  std::size_t running() const;
  std::size_t failed_trials() const;
};
/// The step that an unfinished cell goes on from; nothing if it begins anew: there is no such file, or it is good for nothing.
std::optional<int> unfinished_step(const SweepFolder& folder, const std::string& hash);
/// Seconds of the cells that ended well, by hash, as the journal has them.
std::map<std::string, double> journal_seconds(const SweepFolder& folder);
/// How far a sweep is; quick, since no HDF5 is opened.
SweepStatus sweep_status(const SweepFolder& folder);

}  // namespace hardgrad::sweeps
