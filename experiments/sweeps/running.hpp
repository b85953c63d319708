// The state of a run, shared by the run_*.cpp files.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/sweeps/claims.hpp"
#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/run.hpp"
#include "experiments/sweeps/run_cell.hpp"
#include "experiments/sweeps/tuning.hpp"
#include "experiments/sweeps/work_left.hpp"

namespace hardgrad::sweeps {

/// Seconds of a monotonic clock.
inline double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A cell to run.
struct Todo {
  const Cell* cell;
  int attempt = 0;  ///< of its last record, which does not count as done; a later one is of another run
};

/// A run; it outlives its threads.
class Run {
 public:
  Run(const Plan& plan, TaskPool& tasks, const RunOptions& options);
  RunReport finish();

 private:
  storage::Share share() const;
  void select();
  void grow_plan();
  bool wait_for_trials();
  void all();
  void run_todo();
  void round(const std::vector<Todo>& todo);
  void work(const Todo& todo);
  void compute(const Cell& cell);
  void save(const Cell& cell, const storage::Unfinished& unfinished);
  void tell(const Cell& cell, const CellProgress& progress, double& told);
  bool done_elsewhere(const Todo& todo);
  void remove_unfinished(const Cell& cell) const;
  void miss_removed();
  void tell_end(const Cell& cell, storage::CellStatus status, const std::string& reason, double seconds);
  bool stop() const { return halt_ || options_.interrupted(); }
  nlohmann::json here(const char* event) const;
  nlohmann::json here(const char* event, const Cell& cell) const;

  Plan plan_;  // grows, between rounds
  TaskPool& tasks_;
  const RunOptions options_;
  const SweepFolder folder_;
  storage::CellStore cells_;
  RunReport report_;
  Outcomes outcomes_;
  std::set<std::string> selected_;            // hashes
  std::map<std::string, std::string> ended_;  // hashes of finished cells, with their files
  std::vector<Todo> todo_, deferred_;
  std::size_t to_come_ = 0;  // cells that will be added to the plan
  WorkLeft left_;
  std::size_t over_ = 0;  // number of finished cells
  int jobs_ = 1;
  char host_[256] = "";
  std::optional<Journal> journal_;
  std::optional<Claims> claims_;
  std::optional<Progress> progress_;
  std::mutex writing_;  // guards HDF5, the journal and the report
  std::set<const Cell*> at_work_;
  bool closed_ = false;       // no more writing
  bool cannot_save_ = false;  // already reported
  std::atomic<bool> halt_ = false;
  std::exception_ptr broken_;
};

}  // namespace hardgrad::sweeps
