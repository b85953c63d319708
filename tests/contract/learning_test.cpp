// Training reduces the exact loss.
#include <doctest/doctest.h>

#include "experiments/training/trainer.hpp"

namespace hardgrad::testing::learning_test {
using namespace measurement;
using namespace tasks;
using namespace training;
namespace {

TEST_CASE("training reduces the exact loss of not_gate") {
  for (const auto* text : {"exact", "reinforce[samples=4]", "rloo", "nvil[samples=4]", "moving_baseline[samples=4]"}) {
    CAPTURE(text);
    std::shared_ptr<const Task> task = make_task(Spec::parse("not_gate"), Key(1));
    TrainSettings settings;
    settings.steps = 300;
    settings.batch = 2;
    settings.optimizer.learning_rate = 0.05;
    const RunKeys keys{Key(1) / "init", Key(1) / "order", Key(1) / "noise"};
    auto training = prepare<double>(task, Spec::parse("not_gate"), Spec::parse(text), settings, keys);
    const auto batch = task->batch(Split::train, {0, 1});
    const double before = exact_reference<double>({}, *training.model, batch, 100).value;
    const auto result = train(training, settings, keys);
    CHECK(result.log.size() == 30);
    CHECK(exact_reference<double>({}, *training.model, batch, 100).value < 0.6 * before);
  }
}

}  // namespace
}  // namespace hardgrad::testing::learning_test
