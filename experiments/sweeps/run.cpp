#include "experiments/sweeps/run.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <thread>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/sweeps/running.hpp"

namespace hardgrad::sweeps {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Freezes the plan in the folder, or checks that its plan is the same. Of two simultaneous plans, only one is accepted.
void adopt(const Plan& plan, const SweepFolder& folder, bool force) {
  std::error_code error;
  std::filesystem::create_directories(folder.cells(), error);
  if (error) throw UsageError(fmt::format("{}: cannot be created: {}; give another --out", folder.cells(), error.message()));
  if (path_kind<UsageError>(folder.plan()) == PathKind::missing && storage::write_new_file(folder.plan(), frozen(plan))) return;
  std::optional<nlohmann::json> there;
  try {
    there = read_plan(folder, [](const auto&, const auto&) {});
  } catch (const InputError&) {
    if (!force) throw;
  }
  const bool same = there && there->at("hash") == plan.hash;
  if (!same && !force)
    throw UsageError(
        fmt::format("{}: holds another plan: {}; give another --out; or --force, to go on here with this plan: cells that both "
                    "have, as when seeds are added, are not run again",
                    folder.path, plan_difference(read_plan(folder), plan)));
  // A growing plan may already have more cells in the folder.
  if (!same || (!plan.tuning && there->value("content", "") != plan.content)) storage::write_file(folder.plan(), frozen(plan));
}

}  // namespace

nlohmann::json Run::here(const char* event) const { return {{"event", event}, {"pid", getpid()}, {"host", host_}}; }
nlohmann::json Run::here(const char* event, const Cell& cell) const {
  auto line = here(event);
  line["cell"] = cell.hash;
  return line;
}

// With [tune], other shares determine the cells to run here.
storage::Share Run::share() const {
  return plan_.tuning ? storage::Share{} : storage::Share{plan_.numbering, options_.shard, options_.shards};
}

Run::Run(const Plan& plan, TaskPool& tasks, const RunOptions& options)
    : plan_(plan),
      tasks_(tasks),
      options_(options),
      folder_{options.out},
      cells_(folder_.cells(), share()),
      jobs_(useful_jobs(options.jobs)) {
  adopt(plan, folder_, options.force);
  report_.leftovers = storage::remove_leftovers(folder_.path) + storage::remove_leftovers(folder_.cells()) + cells_.mend();
  storage::provenance_threads(jobs_);
  gethostname(host_, sizeof host_ - 1);
  journal_.emplace(folder_.journal());
  remove_void_claims(folder_.cells());
  claims_.emplace(folder_.cells());
  if (plan_.tuning) outcomes_ = outcomes_in(cells_, plan_.tuning->config->tune->metric);
  grow_plan();
  const auto seconds = journal_seconds(folder_);  // of earlier runs in this folder
  for (const auto& cell : plan_.cells)
    if (const auto it = seconds.find(cell.hash); it != seconds.end()) left_.took(kind_of(cell.axes), it->second, cell.share);
  select();
  progress_.emplace(todo_.size() + to_come_, options.progress, options.print,
                    [this] { return left_.together(jobs_, clock_seconds()); });
  auto line = here("run");
  line.update({{"plan", plan.hash},
               {"jobs", jobs_},
               {"cells", todo_.size()},
               {"shard", fmt::format("{}/{}", options.shard, options.shards)}});
  journal_->append(line);
}

// Selects our cells that are new in the plan.
void Run::select() {
  todo_.clear();
  TaskPool::Users users;
  for (const auto* cell : selected_cells(plan_, options_.only, options_.shard, options_.shards)) {
    if (!selected_.insert(cell->hash).second) continue;
    ++report_.selected;
    const auto state = cell_state(cells_, cell->hash);
    const auto found = cells_.find(cell->hash);
    if (is_done(state, *cell)) {
      ++report_.already;
      ended_[cell->hash] = found->path;
      remove_unfinished(*cell);  // left by a process that was killed between two statements
      continue;
    }
    todo_.push_back({cell, found ? found->cell.attempt : 0});
    if (!cell->skip.empty()) continue;
    left_.expect(cell->hash, kind_of(cell->axes), cell->share);
    ++users[data_of(plan_.seed, *cell)];
  }
  tasks_.expect(users);
  const auto later = selected_cells(plan_, options_.only, options_.shard, options_.shards, true);
  to_come_ = later.size();
  left_.to_come(work_of(later));
}

void Run::all() {
  do {
    report_.waiting = 0;
    progress_->expect(over_ + todo_.size() + to_come_);
    run_todo();
  } while (wait_for_trials());
}

RunReport Run::finish() {
  struct Shared {
    std::mutex mutex;
    std::condition_variable over;
    bool is_over = false;
  };
  // Outlives this call, because the thread may.
  const auto shared = std::make_shared<Shared>();
  std::thread thread([this, shared] {
    try {
      all();
    } catch (...) {
      std::lock_guard guard(writing_);
      if (!broken_) broken_ = std::current_exception();
    }
    std::lock_guard guard(shared->mutex);
    shared->is_over = true;
    shared->over.notify_all();
  });
  {
    std::unique_lock lock(shared->mutex);
    std::optional<Clock::time_point> asked;
    while (!shared->is_over) {
      shared->over.wait_for(lock, 50ms);
      if (!asked && options_.interrupted()) asked = Clock::now();
      if (!shared->is_over && asked && options_.patience &&
          std::chrono::duration<double>(Clock::now() - *asked).count() > options_.patience()) {
        lock.unlock();
        std::lock_guard guard(writing_);
        closed_ = true;  // their results are discarded
        for (const auto* cell : at_work_) journal_->append(here("interrupted", *cell));
        claims_->give_all_back();
        progress_->finish();
        report_.interrupted = report_.abandoned = true;
        thread.detach();
        return report_;
      }
    }
  }
  thread.join();
  progress_->finish();
  report_.interrupted = options_.interrupted();
  if (broken_) std::rethrow_exception(broken_);
  miss_removed();
  if (plan_.tuning) {
    for (const auto& search : plan_.tuning->searches)
      if (!search.stuck.empty()) report_.failures.push_back(search.label() + ": " + search.stuck);
    report_.tuned = tuning_lines(plan_);
    report_.searches = tuning_json(plan_);
  }
  return report_;
}

RunReport run_plan(const Plan& plan, TaskPool& tasks, const RunOptions& options) {
  auto run = std::make_unique<Run>(plan, tasks, options);
  auto report = run->finish();
  if (report.abandoned) (void)run.release();  // its threads still use it
  return report;
}

}  // namespace hardgrad::sweeps
