// The log of a run: its lines in the journal, the bar on the terminal, the remaining time, and the report at the end.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/remaining_work.hpp"
#include "experiments/sweeps/run.hpp"
#include "experiments/sweeps/run_cell.hpp"

namespace hardgrad::sweeps {

/// The events of cells, `broke` and `say` are thread-safe; the rest is for when no cell runs. After `close` no cell starts or is
/// recorded: the results of threads that go on are discarded.
class RunLog {
 public:
  /// UsageError if the journal cannot be written. `jobs`: cells in parallel.
  RunLog(const std::string& journal, int jobs);

  /// An earlier run took these seconds for the cell.
  void took_before(const Cell& cell, double seconds);
  /// A trial of an earlier run says that a cell of this kind takes `seconds`.
  void tried(const std::string& kind, double seconds) { remaining_.tried(kind, seconds); }
  /// The same of a trial of this run.
  void tried(const Cell& cell, double seconds);
  bool knows_seconds(const Cell& cell) const { return remaining_.know(kind_of(cell.axes)); }
  /// A cell that this run will compute.
  void expect(const Cell& cell);
  /// Cells that will be added to the plan.
  void to_come(const std::vector<const Cell*>& cells);
  /// Starts the bar on the terminal, for this number of cells, and writes the run's first line.
  void begin(std::size_t cells, const RunOptions& options, nlohmann::json line);
  /// The number of cells that are not finished yet.
  void remaining(std::size_t cells);
  /// A line on the terminal.
  void say(const std::string& line) { progress_->say(line); }

  /// False after `close`: the cell is not computed.
  bool start(const Cell& cell);
  /// `last_logged`: the time of the cell's last line, which is updated.
  void progress(const Cell& cell, const CellProgress& progress, double& last_logged);
  void interrupted(const Cell& cell);
  /// The end of a computed cell; `keep` stores its record and returns its file.
  void end(const Cell& cell, const storage::CellRecord& record, double seconds, const std::function<std::string()>& keep);
  /// The end of a cell that another run has computed.
  void end_elsewhere(const Cell& cell, CellState state, bool done, const std::string& reason, const std::string& file);
  /// A cell that was finished before.
  void already(const Cell& cell, const std::string& file);
  /// An error that ends the run; the first counts.
  void broke(std::exception_ptr error, const Cell* cell = nullptr);

  /// Takes the lock of all events.
  template <class F>
  void locked(F f) {
    std::lock_guard guard(writing_);
    f();
  }
  template <class F>
  void unless_closed(F f) {
    std::lock_guard guard(writing_);
    if (!closed_) f();
  }
  /// Writes that the running cells are interrupted. The report so far.
  RunReport close();
  /// Ends the bar.
  void finish() { progress_->finish(); }
  /// Throws the error that ended the run, if there is one.
  void rethrow() const;

  /// Counts and failures.
  RunReport& report() { return report_; }
  /// Hashes of the finished cells, with their files.
  const std::map<std::string, std::string>& ended() const { return ended_; }

 private:
  nlohmann::json line(const char* event) const;
  nlohmann::json line(const char* event, const Cell& cell) const;
  void count_end(const Cell& cell, storage::CellStatus status, const std::string& reason, double seconds,
                 const std::string& file);

  Journal journal_;
  const int jobs_;
  char host_[256] = "";
  RunReport report_;
  std::map<std::string, std::string> ended_;
  RemainingWork remaining_;
  std::optional<Progress> progress_;
  std::size_t over_ = 0;  // number of finished cells
  std::mutex writing_;    // guards the journal, the report and the folder's files
  std::set<const Cell*> at_work_;
  bool closed_ = false;
  std::exception_ptr broken_;
};

}  // namespace hardgrad::sweeps
