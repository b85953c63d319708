// The folder of a sweep: plan.json, journal.jsonl, and in cells/ the finished cells, checkpoints, unfinished cells and claims;
// the status of its cells, and their curves.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/storage/cell_store.hpp"
#include "experiments/sweeps/plan.hpp"
#include "experiments/sweeps/remaining_work.hpp"

namespace hardgrad::sweeps {

/// The journal of a sweep: one JSON object per line, append-only; an incomplete last line is ignored.
class Journal {
 public:
  /// Opens for appending and creates the file if needed; first ends an incomplete last line. UsageError on failure.
  explicit Journal(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  /// Adds the time and writes the line in one call, so that lines of several processes do not mix.
  void append(nlohmann::json event);

  /// f(event) for each readable line in order; none if there is no file.
  static void each(const std::string& path, const std::function<void(const nlohmann::json&)>& f);
  /// All of them.
  static std::vector<nlohmann::json> read(const std::string& path);

 private:
  std::string path_;
  int file_ = -1;
};

struct SweepFolder {
  std::string path;
  std::string plan() const { return path + "/plan.json"; }
  std::string journal() const { return path + "/journal.jsonl"; }
  std::string cells() const { return path + "/cells"; }
  std::string checkpoint(const std::string& hash) const { return cells() + "/" + hash + ".checkpoint.h5"; }
  /// The file of an unfinished cell, from which its next run resumes.
  std::string partial(const std::string& hash) const { return cells() + "/" + hash + ".unfinished.h5"; }
};

enum class CellState { pending, ok, failed, skipped, damaged, unreadable };
std::string to_string(CellState state);
/// Half-written files, and files of cells with a half-written end, of killed processes in the folder, which `run` removes.
std::vector<storage::StaleTempFile> stale_files(const SweepFolder& folder, const storage::CellStore& cells);
/// A cell is damaged if its record is and, with `with_checkpoint`, if its checkpoint is missing or damaged; it is unreadable if
/// its record is sound, but not of a form that this program reads. Both are run again.
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
std::optional<int> partial_step(const SweepFolder& folder, const std::string& hash);
/// Seconds of cells, by hash.
struct JournalSeconds {
  std::map<std::string, double> took;   ///< of the successful ones
  std::map<std::string, double> tried;  ///< that trials of cells have said
};
JournalSeconds journal_seconds(const SweepFolder& folder);
/// The status of a sweep; quick, because it opens no HDF5 file. `cells`: those of the folder.
SweepStatus sweep_status(const SweepFolder& folder, const storage::CellStore& cells);

/// A point of a curve: the cost of training so far, and the loss.
struct CurvePoint {
  int step = 0;
  double rows = 0, cpu_seconds = 0, loss = 0;
};

struct CellCurve {
  AxisValues axes;
  CellStatusLine line;
  int step = 0;                                   ///< the last known one
  std::optional<double> share;                    ///< of its budget; 1 if it is finished
  std::vector<CurvePoint> training;               ///< logged mean losses
  std::map<std::string, double> losses, metrics;  ///< of the last evaluation
  std::string ended_by;                           ///< TrainResult::ended_by
};

/// Reads a folder repeatedly; unchanged files and finished cells are not read again.
class Curves {
 public:
  explicit Curves(SweepFolder folder) : folder_(std::move(folder)), cells_(folder_.cells()) {}
  /// The curves of all cells that are not skipped, in the plan's order. InputError if there is no plan.
  std::vector<CellCurve> look();
  /// The status of the sweep at the last look().
  const SweepStatus& status() const { return status_; }

 private:
  struct Known {
    bool done = false;
    std::filesystem::file_time_type time = {};  // of the file of an unfinished cell
    training::TrainResult result = {};
  };
  const training::TrainResult* read(const std::string& hash, bool done);
  SweepFolder folder_;
  storage::CellStore cells_;
  SweepStatus status_;
  std::map<std::string, Known> known_;
};

}  // namespace hardgrad::sweeps
