// Tasks with a curriculum: an optional interface besides Task.
#pragma once

#include <cstdint>
#include <vector>

#include "core/models/batch.hpp"
#include "core/random/key.hpp"

namespace hardgrad::tasks {

/// Draws training examples by the number of examples seen before. The result depends only on its arguments, so an interrupted
/// training resumes with the same examples.
struct Graded {
  virtual ~Graded() = default;
  /// Replaces Task::training_batch; `seen` examples were drawn before this batch.
  virtual Batch graded_batch(const std::vector<int>& indices, Key epoch, std::uint64_t seen) const = 0;
};

}  // namespace hardgrad::tasks
