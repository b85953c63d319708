// A plan that grows during a run: finished trials determine the next cells.
#include <fmt/format.h>

#include <thread>

#include "experiments/storage/atomic_file.hpp"
#include "experiments/sweeps/running.hpp"

namespace hardgrad::sweeps {
namespace {

using namespace std::chrono_literals;

}  // namespace

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
