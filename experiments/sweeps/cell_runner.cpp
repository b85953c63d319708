#include "experiments/sweeps/cell_runner.hpp"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>

#include "core/support/error.hpp"
#include "experiments/support/parallel.hpp"

namespace hardgrad::sweeps {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

}  // namespace

void CellRunner::round(const std::vector<PendingCell>& pending) {
  // TBB's workers in addition to the waiting thread; `next` distributes the cells in the plan's order.
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(jobs_));
  tbb::task_arena arena(jobs_);
  std::atomic<std::size_t> next = 0;
  arena.execute([&] {
    parallel_for(std::min(jobs_, static_cast<int>(pending.size())), [&](int) {
      for (std::size_t i; !stop() && (i = next++) < pending.size();) tbb::this_task_arena::isolate([&] { work(pending[i]); });
    });
  });
}

void CellRunner::run() {
  round(queue_.pending);
  bool announced = false;
  while (!queue_.deferred().empty() && !stop()) {
    const auto waiting = queue_.take_deferred();
    if (!announced) {
      const auto holders = valid_leases(folder_.cells());
      const auto it = holders.find(waiting.front().cell->hash);
      log_.say(fmt::format("waiting for {} of another run ({})",
                           waiting.size() == 1 ? "a cell" : fmt::format("{} cells", waiting.size()),
                           it == holders.end() ? "just finished" : it->second));
      announced = true;
    }
    round(waiting);
    for (int i = 0; i < 10 && queue_.deferred().size() == waiting.size() && !stop(); ++i) std::this_thread::sleep_for(100ms);
  }
}

void CellRunner::compute(const Cell& cell) {
  if (!log_.start(cell)) return;
  const auto start = Clock::now();
  double last_logged = -std::numeric_limits<double>::infinity();  // last journal entry: never
  const auto record = run_cell(plan_, cell, tasks_,
                               {.stop = [this] { return stop(); },
                                .checkpoint = folder_.checkpoint(cell.hash),
                                .partial = folder_.partial(cell.hash),
                                .save = [&](const storage::PartialCell& partial) { save(cell, partial); },
                                .progress = [&](const CellProgress& progress) { log_.progress(cell, progress, last_logged); }});
  // Includes the training in earlier runs.
  const double seconds = std::max(record.result.seconds, std::chrono::duration<double>(Clock::now() - start).count());
  log_.end(cell, record, seconds, [&] {
    cells_.append(record);
    // A failed cell resumes from there; a failed trial is done.
    if (record.status != storage::CellStatus::failed || cell.round > 0) remove_partial_cell(cell);
    return file_of(cell);
  });
  stop_if_failed(cell, record.status == storage::CellStatus::failed);
}

void CellRunner::stop_if_failed(const Cell& cell, bool failed) {
  if (failed && cell.round == 0 && options_.fail_fast) halt_ = true;
}

std::string CellRunner::file_of(const Cell& cell) const {
  const auto entry = cells_.find(cell.hash);  // none if its file was removed since
  return entry ? entry->path : cells_.own();
}

// Whether another run has finished the cell since the last check; its result then counts as ours.
bool CellRunner::done_elsewhere(const PendingCell& pending) {
  const auto& cell = *pending.cell;
  cells_.refresh();
  const auto state = cell_state(cells_, cell.hash);
  const bool done = is_done(state, cell);
  const bool tried = state == CellState::failed || state == CellState::skipped;
  const auto entry = cells_.find(cell.hash);  // none if its file was removed since
  if (!done && !(tried && entry && entry->cell.attempt != pending.attempt)) return false;
  const auto reason = state == CellState::failed ? cells_.read(cell.hash).reason : std::string();
  log_.end_elsewhere(cell, state, done, reason, file_of(cell));
  stop_if_failed(cell, state == CellState::failed);
  return true;
}

void CellRunner::work(const PendingCell& pending) {
  const auto& cell = *pending.cell;
  try {
    try {
      if (!leases_.take(cell.hash)) {
        if (!done_elsewhere(pending)) queue_.defer(pending);
        return;
      }
      if (!done_elsewhere(pending)) compute(cell);
    } catch (const Interrupted&) {
      log_.interrupted(cell);
    }
  } catch (...) {  // the folder is no longer writable: stop
    log_.broke(std::current_exception(), &cell);
    halt_ = true;
  }
  leases_.give_back(cell.hash);
}

void CellRunner::save(const Cell& cell, const storage::PartialCell& partial) {
  log_.unless_closed([&] {
    try {
      storage::write_partial_cell(folder_.partial(cell.hash), partial);
    } catch (const UsageError& error) {  // the cell may still succeed
      if (!std::exchange(cannot_save_, true)) log_.say(fmt::format("a running cell was not saved: {}", error.what()));
    }
  });
}

void CellRunner::remove_partial_cell(const Cell& cell) const {
  std::error_code none;
  std::filesystem::remove(folder_.partial(cell.hash), none);
}

}  // namespace hardgrad::sweeps
