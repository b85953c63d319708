// The toy tasks `bits`, `gaussians` and `subsets`: one example without fields. The models have the closed-form costs.
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks::toys {
namespace {

class Toy : public Task {
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

struct Bits final : Toy {
  Bits(const Settings&, Key) : Toy("bits") {}
};
const TaskEntry bits = {
    .name = "bits",
    .summary = "bits drawn from logits and scored by a closed-form function",
    .data = "none: closed form",
    .default_model = "bits",
};
HARDGRAD_TASK(Bits, bits)

struct Gaussians final : Toy {
  Gaussians(const Settings&, Key) : Toy("gaussians") {}
};
const TaskEntry gaussians = {
    .name = "gaussians",
    .summary = "numbers drawn from Normals and scored by a closed-form function",
    .data = "none: closed form",
    .default_model = "gaussians",
};
HARDGRAD_TASK(Gaussians, gaussians)

struct Subsets final : Toy {
  Subsets(const Settings&, Key) : Toy("subsets") {}
};
const TaskEntry subsets = {
    .name = "subsets",
    .summary = "subsets of k of n options, drawn from logits and scored by a closed-form function",
    .data = "none: closed form",
    .default_model = "subsets",
};
HARDGRAD_TASK(Subsets, subsets)

}  // namespace
}  // namespace hardgrad::tasks::toys
