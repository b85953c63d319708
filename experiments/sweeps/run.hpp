// Runs the cells of a plan in TBB. Running again resumes: cells with a complete record are not run again. Simultaneous runs
// share the work: each cell is claimed before it starts, and a run waits for the cells of others.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/storage/cell.hpp"
#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/plan.hpp"
#include "experiments/sweeps/progress.hpp"

namespace hardgrad::sweeps {

struct RunOptions {
  std::string out = {};
  int jobs = 0;                        ///< parallel cells, at most one per core; 0: one per core
  std::vector<std::string> only = {};  ///< filters
  std::size_t shard = 1, shards = 1;
  bool fail_fast = false;
  bool force = false;  ///< use a folder that has another plan
  ProgressMode progress = ProgressMode::automatic;
  Stop interrupted = [] { return false; };  ///< polled; running cells then stop
  std::function<double()> patience = {};    ///< seconds to wait for them; empty: without limit
  int idle_checks = 20;  ///< with [tune]: tenths of a second without any process on the awaited trials before giving up
  std::function<void(const std::string&)> print = {};  ///< for tests; by default stderr
};

// NOLINTNEXTLINE(bugprone-exception-escape): destroying this JSON value does not throw
struct RunReport {
  std::size_t selected = 0;  ///< cells of this shard and filter
  std::size_t already = 0;   ///< of these, done before, or by another run in the meantime
  std::size_t ok = 0, skipped = 0;
  std::size_t stale_files = 0;        ///< number of removed half-written files of killed processes
  std::vector<std::string> failures;  ///< "label: reason"
  std::size_t failed_trials = 0;      ///< of the search for settings: never chosen, and not failures of the sweep
  std::size_t waiting = 0;            ///< cells that others must run before this shard (or filter) can continue
  std::vector<std::string> tuned;     ///< with [tune]: one line per search with the chosen setting
  nlohmann::json searches;            ///< the same as in plan.json; null without [tune]
  bool interrupted = false;
  bool abandoned = false;  ///< threads still use the plan and the tasks: leave by std::_Exit
  /// 0, 1 if cells failed, 4 if it waits for other shards, 130 if interrupted.
  int exit_status() const { return interrupted ? 130 : !failures.empty() ? 1 : waiting ? 4 : 0; }
};

/// UsageError if the folder cannot be written or has another plan.
RunReport run_plan(const Plan& plan, TaskPool& tasks, const RunOptions& options);

}  // namespace hardgrad::sweeps
