#include "experiments/sweeps/remaining_work.hpp"

#include <fmt/format.h>

namespace hardgrad::sweeps {
namespace {

std::string task_of(const std::string& kind) { return kind.substr(0, kind.find('\n')); }

}  // namespace

std::string kind_of(const AxisValues& axes) {
  std::string kind = axes.at("task") + "\n";
  for (const auto& [name, value] : axes)
    if (name != "seed" && name != "task") kind += fmt::format("{}={}\n", name, value);
  return kind;
}

void Durations::add(const std::string& kind, double seconds, double work) {
  auto& mean = kinds_[kind];
  mean.sum += seconds;
  mean.weight += work;
}

void Durations::tried(const std::string& kind, double seconds) { tried_[task_of(kind)] = seconds; }

bool Durations::know(const std::string& kind) const {
  const auto task = task_of(kind);
  return tried_.contains(task) ||
         std::any_of(kinds_.begin(), kinds_.end(), [&](const auto& known) { return task_of(known.first) == task; });
}

std::optional<double> Durations::seconds(const WorkByKind& left) const {
  std::map<std::string, Mean> tasks;
  Mean all;
  for (const auto& [kind, mean] : kinds_)
    for (auto* into : {&tasks[task_of(kind)], &all}) {
      into->sum += mean.value();
      ++into->weight;
    }
  for (const auto& [task, seconds] : tried_) {
    if (!tasks.emplace(task, Mean{seconds, 1}).second) continue;
    all.sum += seconds;
    ++all.weight;
  }
  double total = 0, all_work = 0, unknown = 0;
  for (const auto& [kind, work] : left) {
    all_work += work;
    const auto own = kinds_.find(kind);
    const auto task = tasks.find(task_of(kind));
    if (own != kinds_.end())
      total += work * own->second.value();
    else if (task != tasks.end())
      total += work * task->second.value();
    else
      unknown += work;
  }
  if (all_work == 0) return 0;
  if (2 * unknown > all_work || all.weight == 0) return {};
  return total + unknown * all.value();
}

void RemainingWork::expect(const std::string& cell, const std::string& kind, double work) {
  std::lock_guard guard(mutex_);
  cells_[cell] = {kind, work};
}

void RemainingWork::to_come(Durations::WorkByKind work) {
  std::lock_guard guard(mutex_);
  to_come_ = std::move(work);
}

void RemainingWork::at_work(const std::string& cell, double seconds, double left, double now) {
  std::lock_guard guard(mutex_);
  working_[cell] = {seconds, left, now};
}

void RemainingWork::given_up(const std::string& cell) {
  std::lock_guard guard(mutex_);
  working_.erase(cell);
}

void RemainingWork::over(const std::string& cell) {
  std::lock_guard guard(mutex_);
  working_.erase(cell);
  cells_.erase(cell);
}

void RemainingWork::took(const std::string& kind, double seconds, double work) {
  std::lock_guard guard(mutex_);
  durations_.add(kind, seconds, work);
}

void RemainingWork::tried(const std::string& kind, double seconds) {
  std::lock_guard guard(mutex_);
  durations_.tried(kind, seconds);
}

bool RemainingWork::know(const std::string& kind) const {
  std::lock_guard guard(mutex_);
  return durations_.know(kind) || std::any_of(working_.begin(), working_.end(), [&](const auto& at_work) {
           const auto cell = cells_.find(at_work.first);
           return cell != cells_.end() && task_of(cell->second.kind) == task_of(kind);
         });
}

std::optional<double> RemainingWork::one_by_one(double now) const {
  std::lock_guard guard(mutex_);
  auto durations = durations_;
  auto left = to_come_;
  double begun = 0;
  for (const auto& [cell, expected] : cells_) {
    const auto it = working_.find(cell);
    if (it == working_.end()) {
      left[expected.kind] += expected.work;
      continue;
    }
    begun += it->second.rest(now);
    // Other cells of its kind will take the same time.
    durations.add(expected.kind, it->second.seconds + it->second.left, expected.work);
  }
  const auto others = durations.seconds(left);
  return others ? std::optional(begun + *others) : std::nullopt;
}

std::optional<double> RemainingWork::together(int jobs, double now) const {
  const auto all = one_by_one(now);
  if (!all) return {};
  std::lock_guard guard(mutex_);
  double longest = 0;
  for (const auto& [cell, working] : working_) longest = std::max(longest, working.rest(now));
  const auto cells = to_come_.empty() ? static_cast<double>(cells_.size()) : jobs;
  const auto at_once = std::min<double>(jobs, std::max<double>(1, cells));
  return std::max(longest, *all / at_once);
}

}  // namespace hardgrad::sweeps
