// The toy `not_gate`: learn 0 -> 1 and 1 -> 0.
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks::not_gate {
namespace {

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

const TaskEntry entry = {
    .name = "not_gate",
    .summary = "the function NOT, two examples (0, 1) and (1, 0), for the smallest network with a gate",
    .data = "none: closed form",
    .default_model = "not_gate",
    .parameters = {},
};
HARDGRAD_TASK(NotGate, entry)

}  // namespace
}  // namespace hardgrad::tasks::not_gate
