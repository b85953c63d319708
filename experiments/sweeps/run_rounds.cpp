// The rounds of a run: its cells, the reports about them, and the growth of its plan.
#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/sweeps/running.hpp"

namespace hardgrad::sweeps {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr double between_lines = 5;  // seconds between journal entries of a running cell

}  // namespace

// Reports about running and finished cells: in the journal, in files, on the terminal.

// Call with `writing_` locked.
void Run::tell_end(const Cell& cell, storage::CellStatus status, const std::string& reason, double seconds) {
  if (status == storage::CellStatus::failed && cell.round > 0) {
    ++report_.failed_trials;
    progress_->say(fmt::format("trial failed: {}: {}", cell.label(), reason));
  } else if (status == storage::CellStatus::failed) {
    report_.failures.push_back(cell.label() + ": " + reason);
    progress_->say("failed: " + report_.failures.back());
    if (options_.fail_fast) halt_ = true;
  }
  if (status == storage::CellStatus::ok && seconds > 0) left_.took(kind_of(cell.axes), seconds, cell.share);
  left_.over(cell.hash);
  ++over_;
  const auto found = cells_.find(cell.hash);  // none if its file was removed since
  ended_[cell.hash] = found ? found->path : cells_.own();
  progress_->advance(status == storage::CellStatus::failed);
}

// Reports cells whose file was removed during the run: they are not done.
void Run::miss_removed() {
  const storage::CellStore now(folder_.cells(), share());
  for (const auto& cell : plan_.cells)
    if (const auto it = ended_.find(cell.hash); it != ended_.end() && !now.find(cell.hash))
      report_.failures.push_back(cell.label() + ": its file was removed during the run: " + it->second);
}

void Run::save(const Cell& cell, const storage::Unfinished& unfinished) {
  std::lock_guard guard(writing_);
  if (closed_) return;
  try {
    storage::write_unfinished(folder_.unfinished(cell.hash), unfinished);
  } catch (const UsageError& error) {  // the cell may still succeed
    if (!std::exchange(cannot_save_, true)) progress_->say(fmt::format("a running cell was not saved: {}", error.what()));
  }
}

void Run::tell(const Cell& cell, const CellProgress& progress, double& told) {
  const auto now = clock_seconds();
  if (progress.left) left_.at_work(cell.hash, progress.seconds, *progress.left, now);
  if (now - told < between_lines) return;
  told = now;
  auto line = here("progress", cell);
  line.update({{"step", progress.step}, {"share", progress.share}, {"seconds", progress.seconds}});
  if (progress.left) line["left"] = *progress.left;
  if (const auto& logged = progress.logged)
    line.update(
        {{"logged", logged->step}, {"rows", logged->rows}, {"cpu_seconds", logged->cpu_seconds}, {"loss", logged->loss}});
  if (progress.evaluated)
    line.update({{"evaluated", progress.evaluated->step},
                 {"losses", progress.evaluated->losses},
                 {"metrics", progress.evaluated->metrics}});
  std::lock_guard guard(writing_);
  try {
    if (!closed_) journal_->append(line);
  } catch (const UsageError&) {  // later writes will report the error
  }
}

void Run::remove_unfinished(const Cell& cell) const {
  std::error_code none;
  std::filesystem::remove(folder_.unfinished(cell.hash), none);
}

// The cells of a run: claimed, computed and written in parallel.

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

// A plan that grows during a run: finished trials determine the next cells.

// Adds the cells that finished trials determine, and freezes the plan again. Only one process at a time does so, so that each
// version includes the earlier ones.
void Run::grow_plan() {
  if (!plan_.tuning) return;
  while (!claims_->take("plan")) {
    if (stop()) return;
    std::this_thread::sleep_for(20ms);
  }
  std::lock_guard guard(writing_);
  cells_.refresh();
  grow(plan_, outcomes_);
  if (const auto text = frozen(plan_); storage::read_file(folder_.plan()) != text) storage::write_file(folder_.plan(), text);
  claims_->give_back("plan");
}

// Called when this process has no cells left. True if the plan has grown by cells of ours; false if it is complete, or if no
// process runs the awaited trials.
bool Run::wait_for_trials() {
  if (!plan_.tuning) return false;
  std::size_t before = 0;
  bool told = false;
  for (int quiet = 0; !stop();) {
    grow_plan();
    select();
    if (!todo_.empty()) return true;
    std::set<std::size_t> ours;
    for (const auto* cell : selected_cells(plan_, options_.only, options_.shard, options_.shards, true))
      ours.insert(cell->search);
    report_.waiting = 0;
    if (ours.empty()) return false;
    const auto claims = standing_claims(folder_.cells());
    std::size_t open = 0;
    bool at_work = false;
    for (const auto& cell : plan_.cells)
      if (cell.round > 0 && ours.contains(cell.search) && !outcomes_(cell)) {
        ++open;
        at_work = at_work || claims.contains(cell.hash);
      }
    report_.waiting = open;
    quiet = at_work || open != before ? 0 : quiet + 1;
    before = open;
    if (quiet == options_.looks) return false;  // not immediately: others hold no claim between two cells
    if (!std::exchange(told, true))
      progress_->say(fmt::format("waiting for other processes to run {} of this search round",
                                 open == 1 ? "a trial" : fmt::format("{} trials", open)));
    std::this_thread::sleep_for(100ms);
  }
  return false;
}

}  // namespace hardgrad::sweeps
