// Tasks whose training begins with easy examples: an interface that a task may have besides Task.
#pragma once

#include <cstdint>
#include <vector>

#include "core/models/batch.hpp"
#include "core/random/key.hpp"

namespace hardgrad::tasks {

/// Draws examples to train on by how many have been trained on before: of the same, a training takes the same, whenever it is
/// interrupted.
struct Graded {
  virtual ~Graded() = default;
  /// In place of Task::training_batch; `seen` examples were drawn before this batch.
  virtual Batch graded_batch(const std::vector<int>& indices, Key epoch, std::uint64_t seen) const = 0;
};

}  // namespace hardgrad::tasks
