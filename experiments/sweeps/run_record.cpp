// Reports about running and finished cells: in the journal, in files, on the terminal.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "core/support/error.hpp"
#include "experiments/sweeps/running.hpp"

namespace hardgrad::sweeps {
namespace {

constexpr double between_lines = 5;  // seconds between journal entries of a running cell

}  // namespace

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

}  // namespace hardgrad::sweeps
