// The toy tasks `bits` and `gaussians`: one example without fields. The models have the closed-form costs.
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks::toys {
namespace {

class Toy final : public Task {
 public:
  explicit Toy(const char* model) : model_(model) {}
  Dimensions dimensions() const override { return {{model_, 1}}; }
  std::size_t size(Split) const override { return 1; }
  Batch batch(Split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.id.assign(indices.size(), 0);
    return batch;
  }

 private:
  const char* model_;
};

const Registration<TaskEntry> registered_bits({
    .name = "bits",
    .summary = "bits drawn from logits and scored by a closed-form function",
    .data = "none: closed form",
    .default_model = "bits",
    .parameters = {},
    .make = [](const Settings&, Key) -> std::unique_ptr<Task> { return std::make_unique<Toy>("bits"); },
});

const Registration<TaskEntry> registered_gaussians({
    .name = "gaussians",
    .summary = "numbers drawn from Normals and scored by a closed-form function",
    .data = "none: closed form",
    .default_model = "gaussians",
    .parameters = {},
    .make = [](const Settings&, Key) -> std::unique_ptr<Task> { return std::make_unique<Toy>("gaussians"); },
});

}  // namespace
}  // namespace hardgrad::tasks::toys
