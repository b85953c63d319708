#include "experiments/sweeps/task_pool.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/error.hpp"
#include "experiments/sweeps/start.hpp"

namespace hardgrad::sweeps {
namespace {

// tasks::reads_files, once for each spec.
bool reads_files(const std::string& task) {
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  std::lock_guard guard(mutex);
  const auto [it, added] = known.try_emplace(task);
  if (added) it->second = tasks::reads_files(Spec::parse(task));
  return it->second;
}

std::string name_of(const std::string& spec) { return spec.substr(0, spec.find('[')); }

}  // namespace

std::uint64_t run_seed(std::uint64_t root_seed, const AxisValues& axes) {
  const auto& task = axes.at("task");
  return (Key(root_seed) / "run" / (reads_files(task) ? name_of(task) : task) / std::stoull(axes.at("seed"))).value();
}

CellData data_of(std::uint64_t root_seed, const Cell& cell) {
  const auto& task = cell.axes.at("task");
  const CellData own{task, run_seed(root_seed, cell.axes), ""};
  const auto files = networks_of(cell.settings);
  if (files.empty()) return own;
  const auto trained = labels_of(files.front().second);
  return name_of(trained.task) == name_of(task) ? CellData{task, trained.seed, files.front().second} : own;
}

std::shared_ptr<const tasks::Task> TaskPool::get(const CellData& data) {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard guard(mutex_);
    auto& place = slots_[data];
    if (!place) place = std::make_shared<Slot>();
    slot = place;
  }
  std::lock_guard guard(slot->loading);  // others wait for the loading thread
  if (!slot->task) {
    std::shared_ptr<const tasks::Task> trained;
    if (!data.like.empty()) trained = trained_task(labels_of(data.like), data.like);
    slot->task = tasks::make_task(Spec::parse(data.task), Key(data.seed) / "data", trained.get());
  }
  auto task = slot->task;
  {
    std::lock_guard hashes(mutex_);
    if (hashes_.try_emplace(data.task, task->data_hash()).first->second != task->data_hash())
      throw InputError(fmt::format("{}: its files have changed since the plan was made; run the sweep again", data.task));
  }
  if (slot->users > 0 && --slot->users == 0) slot->task.reset();
  return task;
}

std::string TaskPool::data_hash(const CellData& data) {
  if (!reads_files(data.task)) return "";
  {
    std::lock_guard guard(mutex_);
    if (const auto it = hashes_.find(data.task); it != hashes_.end()) return it->second;
  }
  return get(data)->data_hash();
}

void TaskPool::expect(const Users& users) {
  std::lock_guard guard(mutex_);
  std::erase_if(slots_, [&](const auto& item) { return !users.contains(item.first); });
  for (const auto& [data, count] : users) {
    auto& place = slots_[data];
    if (!place) place = std::make_shared<Slot>();
    place->users = count;
  }
}

}  // namespace hardgrad::sweeps
