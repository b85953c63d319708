#include "experiments/sweeps/work_left.hpp"

namespace hardgrad {

void WorkLeft::expect(const std::string& cell, const std::string& kind) {
  std::lock_guard guard(mutex_);
  kinds_[cell] = kind;
}

void WorkLeft::at_work(const std::string& cell, double seconds, double left, double now) {
  std::lock_guard guard(mutex_);
  working_[cell] = {seconds, left, now};
}

void WorkLeft::given_up(const std::string& cell) {
  std::lock_guard guard(mutex_);
  working_.erase(cell);
}

void WorkLeft::over(const std::string& cell) {
  std::lock_guard guard(mutex_);
  working_.erase(cell);
  kinds_.erase(cell);
}

void WorkLeft::took(const std::string& kind, double seconds) {
  std::lock_guard guard(mutex_);
  durations_.add(kind, seconds);
}

std::optional<double> WorkLeft::one_by_one(double now) const {
  std::lock_guard guard(mutex_);
  auto durations = durations_;
  Durations::Left left;
  double begun = 0;
  for (const auto& [cell, kind] : kinds_) {
    const auto it = working_.find(cell);
    if (it == working_.end()) {
      ++left[kind];
      continue;
    }
    begun += it->second.rest(now);
    durations.add(kind, it->second.seconds + it->second.left);  // others of its kind will take as long
  }
  const auto others = durations.seconds(left);
  return others ? std::optional(begun + *others) : std::nullopt;
}

std::optional<double> WorkLeft::together(int jobs, double now) const {
  const auto all = one_by_one(now);
  if (!all) return {};
  std::lock_guard guard(mutex_);
  double longest = 0;
  for (const auto& [cell, working] : working_) longest = std::max(longest, working.rest(now));
  const auto at_once = std::min<double>(jobs, std::max<double>(1, static_cast<double>(kinds_.size())));
  return std::max(longest, *all / at_once);
}

}  // namespace hardgrad
