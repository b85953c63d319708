#include "experiments/sweeps/run.hpp"
#include "experiments/sweeps/run_cell.hpp"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/support/place.hpp"
#include "experiments/sweeps/claims.hpp"
#include "experiments/sweeps/journal.hpp"
#include "experiments/sweeps/tuning.hpp"
#include "experiments/sweeps/work_left.hpp"

namespace hardgrad {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Freezes the plan in the folder, or makes sure that the one there is the same. Of two plans that come at once, one is first.
void adopt(const Plan& plan, const SweepFolder& folder, bool force) {
  std::error_code error;
  std::filesystem::create_directories(folder.cells(), error);
  if (error) throw UsageError(fmt::format("{}: cannot be made: {}; give another --out", folder.cells(), error.message()));
  const auto text = frozen(plan);
  if (place_of<UsageError>(folder.plan()) == Place::nothing && write_new_file(folder.plan(), text)) return;
  if (!force)
    if (const auto difference = plan_difference(read_plan(folder), plan); !difference.empty())
      throw UsageError(
          fmt::format("{}: holds another plan: {}; give another --out, or --force to go on here with the "
                      "new plan (finished cells it shares are kept)",
                      folder.path, difference));
  // A plan that grows may have grown further there than we know yet.
  if ((!plan.tuning || !plan_difference(read_plan(folder), plan).empty()) && read_file(folder.plan()) != text)
    write_file(folder.plan(), text);
}

double clock_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }
constexpr double between_lines = 5;  // seconds between what the journal says of a cell at work

struct Todo {
  const Cell* cell;
  std::string seal;  ///< of the file that is there and is not good: another one is another run's work
};

std::string seal_of(const std::string& path) {
  try {
    return read_seal(path).hash;
  } catch (const InputError&) {
    return {};
  }
}

// A run: lives for as long as one of its threads does.
class Run {
 public:
  Run(const Plan& plan, TaskPool& tasks, const RunOptions& options);
  RunReport finish();

 private:
  std::size_t to_come() const;
  void select();
  void grow_plan();
  bool wait_for_trials();
  void all();
  void run_todo();
  void round(const std::vector<Todo>& todo);
  void work(const Todo& todo);
  void compute(const Cell& cell);
  void save(const Cell& cell, const Unfinished& unfinished);
  void tell(const Cell& cell, const CellProgress& progress, double& told);
  bool done_elsewhere(const Todo& todo);
  void remove_unfinished(const Cell& cell) const;
  void tell_end(const Cell& cell, CellStatus status, const std::string& reason, double seconds);
  bool stop() const { return halt_ || options_.interrupted(); }
  nlohmann::json here(const char* event) const { return {{"event", event}, {"pid", getpid()}, {"host", host_}}; }
  nlohmann::json here(const char* event, const Cell& cell) const {
    auto line = here(event);
    line["cell"] = cell.hash;
    return line;
  }

  Plan plan_;  // grows, between rounds
  TaskPool& tasks_;
  const RunOptions options_;
  const SweepFolder folder_;
  RunReport report_;
  Outcomes outcomes_;
  std::set<std::string> selected_;  // hashes
  std::vector<Todo> todo_, deferred_;
  WorkLeft left_;
  std::size_t over_ = 0;  // cells that ended
  int jobs_ = 1;
  char host_[256] = "";
  std::optional<Journal> journal_;
  std::optional<Claims> claims_;
  std::optional<Progress> progress_;
  std::mutex writing_;  // HDF5, the journal and the report belong to whoever holds it
  std::set<const Cell*> at_work_;
  bool closed_ = false;       // nothing is written any more
  bool cannot_save_ = false;  // and that has been said
  std::atomic<bool> halt_ = false;
  std::exception_ptr broken_;
};

Run::Run(const Plan& plan, TaskPool& tasks, const RunOptions& options)
    : plan_(plan), tasks_(tasks), options_(options), folder_{options.out}, jobs_(useful_jobs(options.jobs)) {
  adopt(plan, folder_, options.force);
  report_.leftovers = remove_leftovers(folder_.path) + remove_leftovers(folder_.cells());
  provenance_threads(jobs_);
  gethostname(host_, sizeof host_ - 1);
  journal_.emplace(folder_.journal());
  remove_void_claims(folder_.cells());
  claims_.emplace(folder_.cells());
  if (plan_.tuning) outcomes_ = outcomes_in(folder_, plan_.tuning->config->tune->metric);
  grow_plan();
  const auto seconds = journal_seconds(folder_);  // of earlier runs in this folder
  for (const auto& cell : plan_.cells)
    if (const auto it = seconds.find(cell.hash); it != seconds.end()) left_.took(kind_of(cell.axes), it->second);
  select();
  progress_.emplace(todo_.size() + to_come(), options.progress, options.print,
                    [this] { return left_.together(jobs_, clock_seconds()); });
  auto line = here("run");
  line.update({{"plan", plan.hash},
               {"jobs", jobs_},
               {"cells", todo_.size()},
               {"shard", fmt::format("{}/{}", options.shard, options.shards)}});
  journal_->append(line);
}

std::size_t Run::to_come() const { return selected_cells(plan_, options_.only, options_.shard, options_.shards, true).size(); }

// Those of our cells that are new in the plan.
void Run::select() {
  todo_.clear();
  TaskPool::Users users;
  for (const auto* cell : selected_cells(plan_, options_.only, options_.shard, options_.shards)) {
    if (!selected_.insert(cell->hash).second) continue;
    ++report_.selected;
    const auto state = cell_state(folder_, cell->hash);
    if (is_done(state, *cell)) {
      ++report_.already;
      remove_unfinished(*cell);  // of a process that was killed between two lines
      continue;
    }
    todo_.push_back({cell, state == CellState::pending ? "" : seal_of(folder_.cell(cell->hash))});
    if (!cell->skip.empty()) continue;
    left_.expect(cell->hash, kind_of(cell->axes));
    ++users[{cell->axes.at("task"), CellKeys(plan_.seed, cell->axes).data.value()}];
  }
  tasks_.expect(users);
}

// Takes in the trials that are over, and freezes the plan anew. One process at a time does so: what it writes then knows all
// that was written before.
void Run::grow_plan() {
  if (!plan_.tuning) return;
  while (!claims_->take("plan")) {
    if (stop()) return;
    std::this_thread::sleep_for(20ms);
  }
  std::lock_guard guard(writing_);
  grow(plan_, outcomes_);
  if (const auto text = frozen(plan_); read_file(folder_.plan()) != text) write_file(folder_.plan(), text);
  claims_->give_back("plan");
}

// After all that we could do. True if the plan has grown by cells of ours; false if it is complete, or if nobody is at work on
// the trials that it waits for.
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
    if (quiet == options_.looks) return false;  // not at once: between two cells others hold no claim
    if (!std::exchange(told, true))
      progress_->say(fmt::format("waiting for {} of this round of the search that others have to run",
                                 open == 1 ? "a trial" : fmt::format("{} trials", open)));
    std::this_thread::sleep_for(100ms);
  }
  return false;
}

// To be called with `writing_` held.
void Run::tell_end(const Cell& cell, CellStatus status, const std::string& reason, double seconds) {
  if (status == CellStatus::failed && cell.round > 0) {
    ++report_.failed_trials;
    progress_->say(fmt::format("trial failed: {}: {}", cell.label(), reason));
  } else if (status == CellStatus::failed) {
    report_.failures.push_back(cell.label() + ": " + reason);
    progress_->say("failed: " + report_.failures.back());
    if (options_.fail_fast) halt_ = true;
  }
  if (status == CellStatus::ok && seconds > 0) left_.took(kind_of(cell.axes), seconds);
  left_.over(cell.hash);
  ++over_;
  progress_->advance(status == CellStatus::failed);
}

void Run::save(const Cell& cell, const Unfinished& unfinished) {
  std::lock_guard guard(writing_);
  if (closed_) return;
  try {
    write_unfinished(folder_.unfinished(cell.hash), unfinished);
  } catch (const UsageError& error) {  // the cell may end well all the same
    if (!std::exchange(cannot_save_, true)) progress_->say(fmt::format("not saved on its way: {}", error.what()));
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
  } catch (const UsageError&) {  // what matters will be tried again
  }
}

void Run::remove_unfinished(const Cell& cell) const {
  std::error_code none;
  std::filesystem::remove(folder_.unfinished(cell.hash), none);
}

void Run::compute(const Cell& cell) {
  {
    std::lock_guard guard(writing_);
    if (closed_) return;
    journal_->append(here("start", cell));
    at_work_.insert(&cell);
  }
  const auto start = Clock::now();
  double told = -std::numeric_limits<double>::infinity();  // the journal: never
  const auto record = run_cell(plan_, cell, tasks_,
                               {.stop = [this] { return stop(); },
                                .checkpoint = folder_.checkpoint(cell.hash),
                                .unfinished = folder_.unfinished(cell.hash),
                                .save = [&](const Unfinished& unfinished) { save(cell, unfinished); },
                                .progress = [&](const CellProgress& progress) { tell(cell, progress, told); }});
  // With the training of earlier runs that it went on from.
  const double seconds = std::max(record.result.seconds, std::chrono::duration<double>(Clock::now() - start).count());
  std::lock_guard guard(writing_);
  if (closed_) return;
  at_work_.erase(&cell);
  write_cell(folder_.cell(cell.hash), record);
  // What failed is tried again from there; but a trial that failed is over.
  if (record.status != CellStatus::failed || cell.round > 0) remove_unfinished(cell);
  auto event = here("end", cell);
  event.update({{"status", to_string(record.status)}, {"reason", record.reason}, {"seconds", seconds}});
  journal_->append(event);
  report_.ok += record.status == CellStatus::ok;
  report_.skipped += record.status == CellStatus::skipped;
  tell_end(cell, record.status, record.reason, seconds);
}

// Whether another run has ended the cell since we looked; then its end is ours.
bool Run::done_elsewhere(const Todo& todo) {
  const auto& cell = *todo.cell;
  const auto state = cell_state(folder_, cell.hash);
  const bool done = is_done(state, cell);
  const bool tried = state == CellState::failed || state == CellState::skipped;
  if (!done && !(tried && seal_of(folder_.cell(cell.hash)) != todo.seal)) return false;
  const auto reason = state == CellState::failed ? read_cell(folder_.cell(cell.hash)).reason : std::string();
  std::lock_guard guard(writing_);
  report_.already += done;
  report_.skipped += !done && state == CellState::skipped;
  tell_end(cell, state == CellState::failed ? CellStatus::failed : CellStatus::skipped, reason, 0);
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
  } catch (...) {  // the folder cannot be written any more: no use to go on
    std::lock_guard guard(writing_);
    if (!broken_) broken_ = std::current_exception();
    at_work_.erase(&cell);
    halt_ = true;
  }
  claims_->give_back(cell.hash);
}

void Run::round(const std::vector<Todo>& todo) {
  // TBB's own workers besides the one that waits here; `next` hands the cells out in the plan's order.
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(jobs_));
  tbb::task_arena arena(jobs_);
  std::atomic<std::size_t> next = 0;
  arena.execute([&] {
    parallel_for(std::min(jobs_, static_cast<int>(todo.size())), [&](int) {
      for (std::size_t i; !stop() && (i = next++) < todo.size();) tbb::this_task_arena::isolate([&] { work(todo[i]); });
    });
  });
}

void Run::all() {
  do {
    report_.waiting = 0;
    progress_->expect(over_ + todo_.size() + to_come());
    run_todo();
  } while (wait_for_trials());
}

void Run::run_todo() {
  round(todo_);
  bool told = false;
  while (!deferred_.empty() && !stop()) {
    const auto waiting = std::exchange(deferred_, {});
    if (!told) {
      const auto holders = standing_claims(folder_.cells());
      const auto it = holders.find(waiting.front().cell->hash);
      progress_->say(fmt::format("waiting for {} that another run is at work on ({})",
                                 waiting.size() == 1 ? "a cell" : fmt::format("{} cells", waiting.size()),
                                 it == holders.end() ? "just over" : it->second));
      told = true;
    }
    round(waiting);
    for (int i = 0; i < 10 && deferred_.size() == waiting.size() && !stop(); ++i) std::this_thread::sleep_for(100ms);
  }
}

RunReport Run::finish() {
  struct Shared {
    std::mutex mutex;
    std::condition_variable over;
    bool is_over = false;
  };
  // Outlives this call, as the thread may.
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
        closed_ = true;  // what they come to is nobody's business any more
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
  if (plan_.tuning) {
    for (const auto& search : plan_.tuning->searches)
      if (!search.stuck.empty()) report_.failures.push_back(search.label() + ": " + search.stuck);
    report_.tuned = tuning_lines(plan_);
    report_.searches = tuning_json(plan_);
  }
  return report_;
}

}  // namespace

RunReport run_plan(const Plan& plan, TaskPool& tasks, const RunOptions& options) {
  auto run = std::make_unique<Run>(plan, tasks, options);
  auto report = run->finish();
  if (report.abandoned) (void)run.release();  // its threads go on in it
  return report;
}

}  // namespace hardgrad
