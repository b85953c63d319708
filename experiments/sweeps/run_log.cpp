#include "experiments/sweeps/run_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/support/error.hpp"

namespace hardgrad::sweeps {
namespace {

constexpr double between_lines = 5;  // seconds between journal entries of a running cell

/// Seconds of a monotonic clock.
double clock_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

RunLog::RunLog(const std::string& journal, int jobs) : journal_(journal), jobs_(jobs) { gethostname(host_, sizeof host_ - 1); }

nlohmann::json RunLog::line(const char* event) const { return {{"event", event}, {"pid", getpid()}, {"host", host_}}; }
nlohmann::json RunLog::line(const char* event, const Cell& cell) const {
  auto line = this->line(event);
  line["cell"] = cell.hash;
  return line;
}

void RunLog::took_before(const Cell& cell, double seconds) { remaining_.took(kind_of(cell.axes), seconds, cell.share); }
void RunLog::tried(const Cell& cell, double seconds) {
  tried(kind_of(cell.axes), seconds);
  std::lock_guard guard(writing_);
  try {
    auto line = this->line("tried", cell);
    line["seconds"] = seconds;
    if (!closed_) journal_.append(line);
  } catch (const UsageError&) {  // later writes will report the error
  }
}
void RunLog::expect(const Cell& cell) { remaining_.expect(cell.hash, kind_of(cell.axes), cell.share); }
void RunLog::to_come(const std::vector<const Cell*>& cells) { remaining_.to_come(work_of(cells)); }

void RunLog::begin(std::size_t cells, const RunOptions& options, nlohmann::json line) {
  progress_.emplace(cells, options.progress, options.print, [this] { return remaining_.together(jobs_, clock_seconds()); });
  line.update(this->line("run"));
  journal_.append(std::move(line));
}

void RunLog::remaining(std::size_t cells) { progress_->expect(over_ + cells); }

bool RunLog::start(const Cell& cell) {
  std::lock_guard guard(writing_);
  if (closed_) return false;
  journal_.append(line("start", cell));
  at_work_.insert(&cell);
  return true;
}

void RunLog::progress(const Cell& cell, const CellProgress& progress, double& last_logged) {
  const auto now = clock_seconds();
  if (progress.left) remaining_.at_work(cell.hash, progress.seconds, *progress.left, now);
  if (now - last_logged < between_lines) return;
  last_logged = now;
  auto line = this->line("progress", cell);
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
    if (!closed_) journal_.append(line);
  } catch (const UsageError&) {  // later writes will report the error
  }
}

void RunLog::interrupted(const Cell& cell) {
  std::lock_guard guard(writing_);
  if (!closed_) journal_.append(line("interrupted", cell));
  at_work_.erase(&cell);
  remaining_.given_up(cell.hash);
}

void RunLog::end(const Cell& cell, const storage::CellRecord& record, double seconds,
                 const std::function<std::string()>& keep) {
  std::lock_guard guard(writing_);
  if (closed_) return;
  at_work_.erase(&cell);
  const auto file = keep();
  auto event = line("end", cell);
  event.update({{"status", name_of(record.status, measurement::statuses)}, {"reason", record.reason}, {"seconds", seconds}});
  journal_.append(event);
  report_.ok += record.status == storage::CellStatus::ok;
  report_.skipped += record.status == storage::CellStatus::skipped;
  count_end(cell, record.status, record.reason, seconds, file);
}

void RunLog::end_elsewhere(const Cell& cell, CellState state, bool done, const std::string& reason, const std::string& file) {
  std::lock_guard guard(writing_);
  report_.already += done;
  report_.skipped += !done && state == CellState::skipped;
  count_end(cell, state == CellState::failed ? storage::CellStatus::failed : storage::CellStatus::skipped, reason, 0, file);
}

void RunLog::already(const Cell& cell, const std::string& file) {
  ++report_.already;
  ended_[cell.hash] = file;
}

// Call with `writing_` locked.
void RunLog::count_end(const Cell& cell, storage::CellStatus status, const std::string& reason, double seconds,
                       const std::string& file) {
  if (status == storage::CellStatus::failed && cell.round > 0) {
    ++report_.failed_trials;
    progress_->say(fmt::format("trial failed: {}: {}", cell.label(), reason));
  } else if (status == storage::CellStatus::failed) {
    report_.failures.push_back(cell.label() + ": " + reason);
    progress_->say("failed: " + report_.failures.back());
  }
  if (status == storage::CellStatus::ok && seconds > 0) remaining_.took(kind_of(cell.axes), seconds, cell.share);
  remaining_.over(cell.hash);
  ++over_;
  ended_[cell.hash] = file;
  progress_->advance(status == storage::CellStatus::failed);
}

void RunLog::broke(std::exception_ptr error, const Cell* cell) {
  std::lock_guard guard(writing_);
  if (!broken_) broken_ = std::move(error);
  at_work_.erase(cell);
}

RunReport RunLog::close() {
  std::lock_guard guard(writing_);
  closed_ = true;
  try {
    for (const auto* cell : at_work_) journal_.append(line("interrupted", *cell));
  } catch (const UsageError&) {  // the report says that the run was interrupted
  }
  return report_;
}

void RunLog::rethrow() const {
  if (broken_) std::rethrow_exception(broken_);
}

}  // namespace hardgrad::sweeps
