#include "experiments/training/batches.hpp"

#include <algorithm>

#include "core/models/parts/dropout.hpp"
#include "core/support/error.hpp"
#include "experiments/tasks/graded.hpp"

namespace hardgrad::training {

Batches::Batches(const tasks::Task& task, int batch, Key order) : task_(task), order_key_(order) {
  examples_ = task.size(tasks::Split::train);
  if (examples_ == 0) throw InputError("the training split is empty");
  size_ = std::min<std::size_t>(batch, examples_);
  per_epoch_ = examples_ / size_;  // the remainder of an epoch is dropped, so that batches have equal sizes
}

Batch Batches::at(int step) {
  const int epoch = step / static_cast<int>(per_epoch_);
  if (epoch != epoch_) {
    order_ = permutation(examples_, order_key_ / static_cast<std::uint64_t>(epoch));
    epoch_ = epoch;
  }
  const auto from = order_.begin() + static_cast<std::ptrdiff_t>((step % per_epoch_) * size_);
  const std::vector<int> indices(from, from + static_cast<std::ptrdiff_t>(size_));
  const auto key = order_key_ / "examples" / static_cast<std::uint64_t>(epoch);
  const auto* graded = dynamic_cast<const tasks::Graded*>(&task_);
  auto batch = graded ? graded->graded_batch(indices, key, static_cast<std::uint64_t>(step) * size_)
                      : task_.training_batch(indices, key);
  add_dropout(batch, order_key_ / "dropout" / static_cast<std::uint64_t>(epoch));
  return batch;
}

}  // namespace hardgrad::training
