// Factories of tasks whose words, labels or answers are numbered by their data: with new numbers, or with those of the task
// that a network was trained on.
#pragma once

#include <memory>

#include "core/support/error.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

/// TaskEntry::make of a task T(settings, data, const T* trained).
template <class T>
std::unique_ptr<Task> make_fresh(const Settings& settings, Key data) {
  return std::make_unique<T>(settings, data, nullptr);
}

/// TaskEntry::make_for of a task T(settings, data, const T* trained).
template <class T>
std::unique_ptr<Task> make_like(const Settings& settings, Key data, const Task& trained) {
  const auto* like = dynamic_cast<const T*>(&trained);
  if (!like) throw Bug("words can be reused only from a task of the same kind");
  return std::make_unique<T>(settings, data, like);
}

}  // namespace hardgrad::tasks
