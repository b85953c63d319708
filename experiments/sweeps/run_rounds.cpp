// The cells of a run: claimed, computed and written in parallel.
#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <thread>

#include "experiments/storage/atomic_file.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/sweeps/running.hpp"

namespace hardgrad::sweeps {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

}  // namespace

void Run::compute(const Cell& cell) {
  {
    std::lock_guard guard(writing_);
    if (closed_) return;
    journal_->append(here("start", cell));
    at_work_.insert(&cell);
  }
  const auto start = Clock::now();
  double told = -std::numeric_limits<double>::infinity();  // last journal entry: never
  const auto record = run_cell(plan_, cell, tasks_,
                               {.stop = [this] { return stop(); },
                                .checkpoint = folder_.checkpoint(cell.hash),
                                .unfinished = folder_.unfinished(cell.hash),
                                .save = [&](const storage::Unfinished& unfinished) { save(cell, unfinished); },
                                .progress = [&](const CellProgress& progress) { tell(cell, progress, told); }});
  // Includes the training in earlier runs.
  const double seconds = std::max(record.result.seconds, std::chrono::duration<double>(Clock::now() - start).count());
  std::lock_guard guard(writing_);
  if (closed_) return;
  at_work_.erase(&cell);
  cells_.append(record);
  // A failed cell resumes from there; a failed trial is done.
  if (record.status != storage::CellStatus::failed || cell.round > 0) remove_unfinished(cell);
  auto event = here("end", cell);
  event.update({{"status", to_string(record.status)}, {"reason", record.reason}, {"seconds", seconds}});
  journal_->append(event);
  report_.ok += record.status == storage::CellStatus::ok;
  report_.skipped += record.status == storage::CellStatus::skipped;
  tell_end(cell, record.status, record.reason, seconds);
}

// Whether another run has finished the cell since the last check; its result then counts as ours.
bool Run::done_elsewhere(const Todo& todo) {
  const auto& cell = *todo.cell;
  cells_.refresh();
  const auto state = cell_state(cells_, cell.hash);
  const bool done = is_done(state, cell);
  const bool tried = state == CellState::failed || state == CellState::skipped;
  if (!done && !(tried && cells_.find(cell.hash)->cell.attempt != todo.attempt)) return false;
  const auto reason = state == CellState::failed ? cells_.read(cell.hash).reason : std::string();
  std::lock_guard guard(writing_);
  report_.already += done;
  report_.skipped += !done && state == CellState::skipped;
  tell_end(cell, state == CellState::failed ? storage::CellStatus::failed : storage::CellStatus::skipped, reason, 0);
  return true;
}

void Run::work(const Todo& todo) {
  const auto& cell = *todo.cell;
  try {
    if (!claims_->take(cell.hash)) {
      if (done_elsewhere(todo)) return;
      std::lock_guard guard(writing_);
      deferred_.push_back(todo);
      return;
    }
    if (!done_elsewhere(todo)) compute(cell);
  } catch (const Interrupted&) {
    std::lock_guard guard(writing_);
    if (!closed_) journal_->append(here("interrupted", cell));
    at_work_.erase(&cell);
    left_.given_up(cell.hash);
  } catch (...) {  // the folder is no longer writable: stop
    std::lock_guard guard(writing_);
    if (!broken_) broken_ = std::current_exception();
    at_work_.erase(&cell);
    halt_ = true;
  }
  claims_->give_back(cell.hash);
}

void Run::round(const std::vector<Todo>& todo) {
  // TBB's workers in addition to the waiting thread; `next` distributes the cells in the plan's order.
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(jobs_));
  tbb::task_arena arena(jobs_);
  std::atomic<std::size_t> next = 0;
  arena.execute([&] {
    parallel_for(std::min(jobs_, static_cast<int>(todo.size())), [&](int) {
      for (std::size_t i; !stop() && (i = next++) < todo.size();) tbb::this_task_arena::isolate([&] { work(todo[i]); });
    });
  });
}

void Run::run_todo() {
  round(todo_);
  bool told = false;
  while (!deferred_.empty() && !stop()) {
    const auto waiting = std::exchange(deferred_, {});
    if (!told) {
      const auto holders = standing_claims(folder_.cells());
      const auto it = holders.find(waiting.front().cell->hash);
      progress_->say(fmt::format("waiting for {} of another run ({})",
                                 waiting.size() == 1 ? "a cell" : fmt::format("{} cells", waiting.size()),
                                 it == holders.end() ? "just finished" : it->second));
      told = true;
    }
    round(waiting);
    for (int i = 0; i < 10 && deferred_.size() == waiting.size() && !stop(); ++i) std::this_thread::sleep_for(100ms);
  }
}

}  // namespace hardgrad::sweeps
