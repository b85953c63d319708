#include "experiments/sweeps/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/sweeps/cell_runner.hpp"
#include "experiments/sweeps/estimate.hpp"
#include "experiments/sweeps/tuning.hpp"

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

/// A run; it outlives its threads.
class Run {
 public:
  Run(const Plan& plan, TaskPool& tasks, const RunOptions& options);
  RunReport finish();

 private:
  storage::Shard shard() const;
  void select();
  void grow_plan();
  bool wait_for_trials();
  void try_tasks(const std::stop_token& over);
  void all();
  void report_removed_cells();

  Plan plan_;  // grows, between rounds
  TaskPool& tasks_;
  const RunOptions options_;
  const SweepFolder folder_;
  storage::CellStore cells_;
  Outcomes outcomes_;
  CellQueue queue_;
  std::size_t to_come_ = 0;  // cells that will be added to the plan
  std::optional<RunLog> log_;
  std::optional<CellLeases> leases_;
  std::optional<CellRunner> runner_;
};

// With [tune], other shares determine the cells to run here.
storage::Shard Run::shard() const {
  return plan_.tuning ? storage::Shard{} : storage::Shard{plan_.numbering, options_.shard, options_.shards};
}

Run::Run(const Plan& plan, TaskPool& tasks, const RunOptions& options)
    : plan_(plan), tasks_(tasks), options_(options), folder_{options.out}, cells_(folder_.cells(), shard()), queue_(options_) {
  const int jobs = useful_jobs(options.jobs);
  adopt(plan, folder_, options.force);
  const auto stale_files =
      storage::remove_stale_files(folder_.path) + storage::remove_stale_files(folder_.cells()) + cells_.repair();
  storage::provenance_threads(jobs);
  log_.emplace(folder_.journal(), jobs);
  log_->report().stale_files = stale_files;
  remove_void_leases(folder_.cells());
  leases_.emplace(folder_.cells());
  runner_.emplace(plan_, tasks_, options_, cells_, queue_, *leases_, *log_, jobs);
  if (plan_.tuning) outcomes_ = outcomes_in(cells_, plan_.tuning->config->tune->metric);
  grow_plan();
  const auto seconds = journal_seconds(folder_);  // of earlier runs in this folder
  for (const auto& cell : plan_.cells) {
    if (const auto it = seconds.took.find(cell.hash); it != seconds.took.end()) log_->took_before(cell, it->second);
    if (const auto it = seconds.tried.find(cell.hash); it != seconds.tried.end()) log_->tried(kind_of(cell.axes), it->second);
  }
  select();
  log_->begin(queue_.pending.size() + to_come_, options_,
              {{"plan", plan.hash},
               {"jobs", jobs},
               {"cells", queue_.pending.size()},
               {"shard", fmt::format("{}/{}", options.shard, options.shards)}});
}

// Selects our cells that are new in the plan.
void Run::select() {
  queue_.pending.clear();
  TaskPool::Users users;
  for (const auto* cell : queue_.added(plan_)) {
    ++log_->report().selected;
    const auto state = cell_state(cells_, cell->hash);
    const auto entry = cells_.find(cell->hash);
    if (is_done(state, *cell)) {
      log_->already(*cell, entry->path);
      runner_->remove_partial_cell(*cell);  // left by a process that was killed between two statements
      continue;
    }
    queue_.pending.push_back({cell, entry ? entry->cell.attempt : 0});
    if (!cell->skip.empty()) continue;
    log_->expect(*cell);
    ++users[data_of(plan_.seed, *cell)];
  }
  tasks_.expect(users);
  const auto later = queue_.to_come(plan_);
  to_come_ = later.size();
  log_->to_come(later);
}

// Tries a cell of each task whose time is unknown, so that the remaining time is known before all tasks have begun. It waits
// a little: the cells at work tell their own time, and a quick run needs no trial.
void Run::try_tasks(const std::stop_token& over) {
  std::vector<const Cell*> of_tasks;  // the last task first: the first ones are at work
  for (auto it = queue_.pending.rbegin(); it != queue_.pending.rend(); ++it) {
    const auto task = it->cell->axes.at("task");
    if (it->cell->skip.empty() &&
        std::none_of(of_tasks.begin(), of_tasks.end(), [&](const Cell* cell) { return cell->axes.at("task") == task; }))
      of_tasks.push_back(it->cell);
  }
  if (of_tasks.size() < 2) return;
  std::mutex sleep;
  std::condition_variable_any wake;
  std::unique_lock lock(sleep);
  if (wake.wait_for(lock, over, 2s, [&] { return over.stop_requested(); })) return;
  const auto stop = [&] { return over.stop_requested() || runner_->stop(); };
  TaskPool tasks;  // not that of the run, which counts its users
  const double each = seconds_of_trials / static_cast<double>(of_tasks.size());
  for (const auto* cell : of_tasks)
    if (!stop() && !log_->knows_seconds(*cell))
      if (const auto seconds = try_cell(plan_, *cell, tasks, each, stop)) log_->tried(*cell, *seconds / cell->share);
}

void Run::all() {
  do {
    log_->report().waiting = 0;
    log_->remaining(queue_.pending.size() + to_come_);
    const std::jthread trials([this](const std::stop_token& over) { try_tasks(over); });
    runner_->run();
  } while (wait_for_trials());
}

// Adds the cells that finished trials determine, and freezes the plan again. Only one process at a time does so, so that each
// version includes the earlier ones.
void Run::grow_plan() {
  if (!plan_.tuning) return;
  while (!leases_->take("plan")) {
    if (runner_->stop()) return;
    std::this_thread::sleep_for(20ms);
  }
  log_->locked([&] {
    cells_.refresh();
    grow(plan_, outcomes_);
    if (const auto text = frozen(plan_); storage::read_file(folder_.plan()) != text) storage::write_file(folder_.plan(), text);
    leases_->give_back("plan");
  });
}

// Called when this process has no cells left. True if the plan has grown by cells of ours; false if it is complete, or if no
// process runs the awaited trials.
bool Run::wait_for_trials() {
  if (!plan_.tuning) return false;
  std::size_t before = 0;
  bool announced = false;
  for (int quiet = 0; !runner_->stop();) {
    grow_plan();
    select();
    if (!queue_.pending.empty()) return true;
    std::set<std::size_t> ours;
    for (const auto* cell : queue_.to_come(plan_)) ours.insert(cell->search);
    log_->report().waiting = 0;
    if (ours.empty()) return false;
    const auto leases = valid_leases(folder_.cells());
    std::size_t open = 0;
    bool at_work = false;
    for (const auto& cell : plan_.cells)
      if (cell.round > 0 && ours.contains(cell.search) && !outcomes_(cell)) {
        ++open;
        at_work = at_work || leases.contains(cell.hash);
      }
    log_->report().waiting = open;
    quiet = at_work || open != before ? 0 : quiet + 1;
    before = open;
    if (quiet == options_.idle_checks) return false;  // not immediately: others hold no claim between two cells
    if (!std::exchange(announced, true))
      log_->say(fmt::format("waiting for other processes to run {} of this search round",
                            open == 1 ? "a trial" : fmt::format("{} trials", open)));
    std::this_thread::sleep_for(100ms);
  }
  return false;
}

// Reports cells whose file was removed during the run: they are not done.
void Run::report_removed_cells() {
  const storage::CellStore now(folder_.cells(), shard());
  const auto& ended = log_->ended();
  for (const auto& cell : plan_.cells)
    if (const auto it = ended.find(cell.hash); it != ended.end() && !now.find(cell.hash))
      log_->report().failures.push_back(cell.label() + ": its file was removed during the run: " + it->second);
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
      log_->broke(std::current_exception());
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
        auto report = log_->close();  // the results of running cells are discarded
        leases_->give_all_back();
        log_->finish();
        thread.detach();
        report.interrupted = report.abandoned = true;
        return report;
      }
    }
  }
  thread.join();
  log_->finish();
  auto& report = log_->report();
  report.interrupted = options_.interrupted();
  log_->rethrow();
  report_removed_cells();
  if (plan_.tuning) {
    for (const auto& search : plan_.tuning->searches)
      if (!search.stuck.empty()) report.failures.push_back(search.label() + ": " + search.stuck);
    report.tuned = tuning_lines(plan_);
    report.searches = tuning_json(plan_);
  }
  return report;
}

}  // namespace

RunReport run_plan(const Plan& plan, TaskPool& tasks, const RunOptions& options) {
  auto run = std::make_unique<Run>(plan, tasks, options);
  auto report = run->finish();
  if (report.abandoned) (void)run.release();  // its threads still use it
  return report;
}

}  // namespace hardgrad::sweeps
