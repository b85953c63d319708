// Runs the cells of a plan in TBB. Running again is resuming: cells whose file is whole are not run again. Runs at the same
// time share the work: each cell is claimed before it is begun, and what others are at work on is waited for.
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
  int jobs = 0;                        ///< cells at a time, at most one a core; 0: as many
  std::vector<std::string> only = {};  ///< filters
  std::size_t shard = 1, shards = 1;
  bool fail_fast = false;
  bool force = false;  ///< take up a folder that holds another plan
  ProgressMode progress = ProgressMode::automatic;
  Stop interrupted = [] { return false; };  ///< polled; cells at work then stop
  std::function<double()> patience = {};    ///< seconds that they are waited for then; empty: for ever
  int looks = 20;  ///< with [tune]: so many tenths of a second nobody may be at work on trials that are waited for
  std::function<void(const std::string&)> print = {};  ///< for tests; by default stderr
};

// NOLINTNEXTLINE(bugprone-exception-escape): that a JSON value may throw as it goes is not so of this one
struct RunReport {
  std::size_t selected = 0;  ///< cells of this shard and filter
  std::size_t already = 0;   ///< of these, done before, or by another run meanwhile
  std::size_t ok = 0, skipped = 0;
  std::size_t leftovers = 0;          ///< files that killed processes left half-written here, now removed
  std::vector<std::string> failures;  ///< "label: reason"
  std::size_t failed_trials = 0;      ///< of the search for settings: they are never chosen, and no failure of the sweep
  std::size_t waiting = 0;            ///< cells that others have to run before this shard (or filter) has something to do again
  std::vector<std::string> tuned;     ///< with [tune]: a line a search, what was chosen
  nlohmann::json searches;            ///< the same as plan.json has it; null without [tune]
  bool interrupted = false;
  bool abandoned = false;  ///< threads are still at work on the plan and the tasks, in vain: leave by std::_Exit
  /// 0, 1 if cells failed, 4 if it is others' turn, 130 if interrupted.
  int exit_status() const { return interrupted ? 130 : !failures.empty() ? 1 : waiting ? 4 : 0; }
};

/// UsageError if the folder cannot be written or holds another plan.
RunReport run_plan(const Plan& plan, TaskPool& tasks, const RunOptions& options);

}  // namespace hardgrad::sweeps
