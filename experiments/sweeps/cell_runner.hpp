// The cells of a run: claimed, computed and written in parallel.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sweeps/cell_leases.hpp"
#include "experiments/sweeps/run_log.hpp"

namespace hardgrad::sweeps {

/// A cell to run.
struct PendingCell {
  const Cell* cell;
  int attempt = 0;  ///< of its last record, which does not count as done; a later one is of another run
};

/// The cells of a shard and filter, in the plan's order: those to run, and those deferred because other runs have claimed them.
class CellQueue {
 public:
  explicit CellQueue(const RunOptions& options) : options_(options) {}

  /// The cells that are new in the plan since the last call.
  std::vector<const Cell*> added(const Plan& plan) {
    std::vector<const Cell*> cells;
    for (const auto* cell : selected_cells(plan, options_.only, options_.shard, options_.shards))
      if (selected_.insert(cell->hash).second) cells.push_back(cell);
    return cells;
  }
  /// The cells that will be added to the plan.
  std::vector<const Cell*> to_come(const Plan& plan) const {
    return selected_cells(plan, options_.only, options_.shard, options_.shards, true);
  }

  std::vector<PendingCell> pending;

  void defer(const PendingCell& cell) {
    std::lock_guard guard(deferring_);
    deferred_.push_back(cell);
  }
  /// Not beside `defer`.
  const std::vector<PendingCell>& deferred() const { return deferred_; }
  std::vector<PendingCell> take_deferred() { return std::exchange(deferred_, {}); }

 private:
  const RunOptions& options_;
  std::set<std::string> selected_;  // hashes
  std::mutex deferring_;
  std::vector<PendingCell> deferred_;
};

/// Computes the cells of a queue; stops if it is interrupted, a file cannot be written, or a cell fails with fail_fast.
class CellRunner {
 public:
  /// `jobs`: cells in parallel. The arguments must outlive it.
  CellRunner(const Plan& plan, TaskPool& tasks, const RunOptions& options, storage::CellStore& cells, CellQueue& queue,
             CellLeases& leases, RunLog& log, int jobs)
      : plan_(plan),
        tasks_(tasks),
        options_(options),
        folder_{options.out},
        cells_(cells),
        queue_(queue),
        leases_(leases),
        log_(log),
        jobs_(jobs) {}

  /// Runs the cells to do, and waits for those that other runs have claimed.
  void run();
  /// Whether it has stopped, or must.
  bool stop() const { return halt_ || options_.interrupted(); }
  /// Removes the state of an unfinished cell.
  void remove_partial_cell(const Cell& cell) const;

 private:
  void round(const std::vector<PendingCell>& pending);
  void work(const PendingCell& pending);
  void compute(const Cell& cell);
  void save(const Cell& cell, const storage::PartialCell& partial);
  bool done_elsewhere(const PendingCell& pending);
  std::string file_of(const Cell& cell) const;
  void stop_if_failed(const Cell& cell, bool failed);

  const Plan& plan_;
  TaskPool& tasks_;
  const RunOptions& options_;
  const SweepFolder folder_;
  storage::CellStore& cells_;
  CellQueue& queue_;
  CellLeases& leases_;
  RunLog& log_;
  const int jobs_;
  bool cannot_save_ = false;  // already reported
  std::atomic<bool> halt_ = false;
};

}  // namespace hardgrad::sweeps
