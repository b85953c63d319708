// The toy `bits`: one example without fields; everything is in the model's closed form.
#include "experiments/tasks/task.hpp"

namespace hardgrad {
namespace {

class Bits final : public Task {
 public:
  Dimensions dimensions() const override { return {{"bits", 1}}; }
  std::size_t size(Split) const override { return 1; }
  Batch batch(Split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.id.assign(indices.size(), 0);
    return batch;
  }
};

const Registration<TaskEntry> registered({
    .name = "bits",
    .summary = "bits drawn from logits and scored by a closed-form function",
    .data = "none: closed form",
    .default_model = "bits",
    .parameters = {},
    .make = [](const Settings&, Key) -> std::unique_ptr<Task> { return std::make_unique<Bits>(); },
});

}  // namespace
}  // namespace hardgrad
