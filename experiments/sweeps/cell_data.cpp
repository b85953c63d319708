// Tasks that cells share; networks from files: their words and the examples of their training.
#include "experiments/sweeps/cell_data.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "experiments/training/evaluation.hpp"

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

namespace {

/// f(path), remembered until the file's size or time changes.
template <class Value, class F>
Value remembered(const std::string& path, F f) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return f(path);  // which names the fault
  const std::tuple now(status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  static std::mutex mutex;
  static std::map<std::string, std::pair<decltype(std::tuple(now)), Value>> known;
  std::lock_guard guard(mutex);
  if (const auto it = known.find(path); it != known.end() && it->second.first == now) return it->second.second;
  auto value = f(path);
  known.insert_or_assign(path, std::pair(now, value));
  return value;
}

std::shared_ptr<const tasks::Task> task_of(const std::string& spec, std::uint64_t seed, const std::string& hash,
                                           const std::string& path, const tasks::Task* like) {
  std::shared_ptr<const tasks::Task> task = tasks::make_task(Spec::parse(spec), Key(seed) / "data", like);
  if (task->data_hash() != hash)
    throw InputError(fmt::format(
        "{}: its network was trained on other contents of the files of {}: restore them, or train it again", path, spec));
  return task;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> networks_of(const CellSettings& settings) {
  std::vector<std::pair<std::string, std::string>> files;
  if (is_checkpoint(settings.start)) files.emplace_back("train.start", settings.start);
  if (!settings.reference.empty()) files.emplace_back("train.reference", settings.reference);
  return files;
}

storage::Checkpoint labels_of(const std::string& path) {
  return remembered<storage::Checkpoint>(path, [](const auto& file) {
    auto checkpoint = storage::load_checkpoint(file);
    for (auto* arrays : {&checkpoint.parameters, &checkpoint.own_parameters}) arrays->clear();
    for (auto* state : {&checkpoint.optimizer, &checkpoint.own_optimizer, &checkpoint.estimator_state}) state->clear();
    return checkpoint;
  });
}

std::string sealed_hash(const std::string& path) {
  return remembered<std::string>(path, [](const auto& file) { return storage::read_seal(file).hash; });
}

std::shared_ptr<const tasks::Task> trained_task(const storage::Checkpoint& checkpoint, const std::string& path) {
  std::shared_ptr<const tasks::Task> words;
  if (const auto& origin = checkpoint.words; !origin.task.empty())
    words = task_of(origin.task, origin.seed, origin.hash, path, nullptr);
  return task_of(checkpoint.task, checkpoint.seed, checkpoint.data_hash, path, words.get());
}

std::string Seen::text() const {
  return fmt::format("its network was trained on {} of the {} {} examples", examples, of, to_string(split));
}

Seen seen_by(const tasks::Task& trained, const tasks::Task& task) {
  const auto set = [](const tasks::Task& of) {
    const auto all = of.contents(tasks::Split::train);
    return std::unordered_set<std::uint64_t>(all.begin(), all.end());
  };
  const auto theirs = set(trained), own = set(task);
  Seen most;
  for (const auto split : {tasks::Split::heldout, tasks::Split::test}) {
    const auto all = task.contents(split);
    Seen seen{split, 0, all.size()};
    for (const auto content : all) seen.examples += theirs.contains(content) && !own.contains(content);
    if (seen.shard() > most.shard()) most = seen;
  }
  return most;
}

void check_networks(const Cell& cell, const tasks::Task& task) {
  const auto name = cell.spec("task").name;
  const bool renumbers = tasks::Tasks::instance().at(name).make_for;
  bool first = true;  // data_of takes the words of this one
  for (const auto& [setting, file] : networks_of(cell.settings)) {
    const auto where = fmt::format("{} = \"{}\"", setting, file);
    const auto labels = labels_of(file);
    const auto trained = trained_task(labels, file);
    const bool has_its_words = std::exchange(first, false) || !renumbers;
    const bool same = has_its_words && Spec::parse(labels.task).name == name;
    for (const auto split : {tasks::Split::train, tasks::Split::heldout, tasks::Split::test})
      if (!same) training::require_same_words(*trained, task, {.split = split}, where);
    if (const auto seen = seen_by(*trained, task); seen.shard() > cell.settings.start_overlap)
      throw UsageError(fmt::format(
          "{}: {}, which would then be too good; take data whose splits are that network's, or allow such a share by "
          "train.start_overlap (in {})",
          where, seen.text(), cell.label()));
  }
}

}  // namespace hardgrad::sweeps
