#include "experiments/sweeps/run.hpp"
#include "experiments/sweeps/run_cell.hpp"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/sweeps/journal.hpp"

namespace hardgrad {
namespace {

// Freezes the plan in the folder, or makes sure that the one there is the same.
void adopt(const Plan& plan, const SweepFolder& folder, bool force) {
  std::error_code error;
  std::filesystem::create_directories(folder.cells(), error);
  if (error) throw UsageError(fmt::format("{}: cannot be made: {}; give another --out", folder.cells(), error.message()));
  if (std::filesystem::exists(folder.plan()) && !force) {
    const auto difference = plan_difference(read_plan(folder), plan);
    if (!difference.empty())
      throw UsageError(
          fmt::format("{}: holds another plan: {}; give another --out, or --force to go on here with the "
                      "new plan (finished cells it shares are kept)",
                      folder.path, difference));
  }
  write_file(folder.plan(), plan.json().dump(1) + "\n");
}

// What earlier runs in this folder took for their cells.
Durations journal_durations(const SweepFolder& folder, const Plan& plan) {
  const auto seconds = journal_seconds(folder);
  Durations durations;
  for (const auto& cell : plan.cells)
    if (const auto it = seconds.find(cell.hash); it != seconds.end()) durations.add(kind_of(cell.axes), it->second);
  return durations;
}

}  // namespace

RunReport run_plan(const Plan& plan, TaskPool& tasks, const RunOptions& options) {
  const SweepFolder folder{options.out};
  adopt(plan, folder, options.force);

  RunReport report;
  report.leftovers = remove_leftovers(folder.path) + remove_leftovers(folder.cells());
  std::vector<const Cell*> todo;
  Durations::Left left;
  for (const auto* cell : selected_cells(plan, options.only, options.shard, options.shards)) {
    ++report.selected;
    if (is_done(cell_state(folder, cell->hash), *cell)) {
      ++report.already;
      continue;
    }
    todo.push_back(cell);
    if (cell->skip.empty()) ++left[kind_of(cell->axes)];
  }

  TaskPool::Users users;
  for (const auto* cell : todo)
    if (cell->skip.empty()) ++users[{cell->axes.at("task"), CellKeys(plan.seed, cell->axes).data.value()}];
  tasks.expect(users);

  const int jobs = options.jobs > 0 ? options.jobs : tbb::this_task_arena::max_concurrency();
  provenance_threads(jobs);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  auto durations = journal_durations(folder, plan);
  Journal journal(folder.journal());
  Progress progress(todo.size(), options.progress, options.print);
  std::mutex writing;  // HDF5, the journal and the report belong to whoever holds it
  std::atomic<bool> halt = false;
  std::atomic<std::size_t> next = 0;
  std::size_t over = 0;
  std::exception_ptr broken;
  const auto stop = [&] { return halt.load() || options.interrupted(); };
  const auto here = [&](const char* event, const Cell& cell) {
    return nlohmann::json{{"event", event}, {"cell", cell.hash}, {"pid", getpid()}, {"host", host}};
  };
  journal.append({{"event", "run"},
                  {"plan", plan.hash},
                  {"pid", getpid()},
                  {"host", host},
                  {"jobs", jobs},
                  {"cells", todo.size()},
                  {"shard", fmt::format("{}/{}", options.shard, options.shards)}});

  const auto work = [&](const Cell& cell) {
    {
      std::lock_guard guard(writing);
      journal.append(here("start", cell));
    }
    const auto start = std::chrono::steady_clock::now();
    try {
      const auto record = run_cell(plan, cell, tasks, folder.checkpoint(cell.hash), stop);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::lock_guard guard(writing);
      write_cell(folder.cell(cell.hash), record);
      auto event = here("end", cell);
      event.update({{"status", to_string(record.status)}, {"reason", record.reason}, {"seconds", seconds}});
      journal.append(event);
      if (record.status == CellStatus::failed) {
        report.failures.push_back(cell.label() + ": " + record.reason);
        progress.say("failed: " + report.failures.back());
        if (options.fail_fast) halt = true;
      }
      report.ok += record.status == CellStatus::ok;
      report.skipped += record.status == CellStatus::skipped;
      const auto kind = kind_of(cell.axes);
      if (record.status == CellStatus::ok) durations.add(kind, seconds);
      if (cell.skip.empty()) --left[kind];
      const auto work_left = durations.seconds(left);
      const auto at_once = std::min<double>(jobs, std::max<double>(1, static_cast<double>(todo.size() - ++over)));
      progress.advance(record.status == CellStatus::failed,
                       work_left ? std::optional<double>(*work_left / at_once) : std::nullopt);
    } catch (const Interrupted&) {
      std::lock_guard guard(writing);
      journal.append(here("interrupted", cell));
    } catch (...) {  // the folder cannot be written any more: no use to go on
      std::lock_guard guard(writing);
      if (!broken) broken = std::current_exception();
      halt = true;
    }
  };

  // TBB's own workers besides the one that waits here; `next` hands the cells out in the plan's order.
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(jobs));
  tbb::task_arena arena(jobs);
  arena.execute([&] {
    parallel_for(jobs, [&](int) {
      for (std::size_t i; !stop() && (i = next++) < todo.size();) tbb::this_task_arena::isolate([&] { work(*todo[i]); });
    });
  });
  progress.finish();
  report.interrupted = options.interrupted();
  if (broken) std::rethrow_exception(broken);
  return report;
}

}  // namespace hardgrad
