// The toy tasks `bits`, `gaussians` and `subsets`: one example without fields, whose models have the closed-form costs; and
// `not_gate`: learn 0 -> 1 and 1 -> 0.
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

/// Fields: reals "x" [B] and "target" [B] with target = 1 - x.
class NotGate final : public Task {
 public:
  NotGate(const Settings&, Key) {}
  Dimensions dimensions() const override { return {{"not_gate", 1}}; }
  std::size_t size(Split) const override { return 2; }
  Batch batch(Split, const std::vector<int>& indices) const override {
    Batch batch;
    for (int i : indices) {
      if (i < 0 || i > 1) throw Bug("not_gate has two examples");
      batch.id.push_back(static_cast<std::uint32_t>(i));
    }
    const Array<double> x = xt::adapt(indices);
    batch.reals = {{"x", x}, {"target", 1 - x}};
    return batch;
  }
};

const TaskEntry not_gate = {
    .name = "not_gate",
    .summary = "the function NOT, two examples (0, 1) and (1, 0), for the smallest network with a gate",
    .data = "none: closed form",
    .default_model = "not_gate",
    .parameters = {},
};
HARDGRAD_TASK(NotGate, not_gate)

}  // namespace
}  // namespace hardgrad::tasks::toys
