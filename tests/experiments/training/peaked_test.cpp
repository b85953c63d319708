// Peaked attention: probabilities far below the smallest float, imprecise hinted weights, samples that all agree. Under the
// address sanitizer (preset sanitize) these trainings also detect writes beyond the end of memory.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/measurement/choice_entropy.hpp"
#include "experiments/training/trainer.hpp"
#include "experiments/verification/scenes.hpp"

namespace hardgrad::testing::peaked_test {
using namespace measurement;
using namespace tasks;
using namespace training;
namespace {

TEST_CASE("short trainings of every network with peaked attention stay finite and agree with their hints") {
  int trainings = 0, networks = 0;
  for (const auto& problem : verification::scene_specs()) {
    const auto structure = verification::SmallScene(problem, false).model->structure();
    if (structure.numbers()) continue;  // numbers have no peaked probabilities
    ++networks;
    for (const auto* name : {"exact_marginal", "rloo[samples=8]", "variational_bound[enumerate=true]"}) {
      CAPTURE(problem.model);
      CAPTURE(name);
      if (wants_posterior(Spec::parse(name)) && *structure.no_posterior) continue;
      if (target_of(Spec::parse(name)).entry().likelihood && *structure.no_likelihood) continue;
      const RunKeys keys{Key(1) / "init", Key(1) / "order", Key(1) / "noise"};
      std::shared_ptr<const Task> task = make_task(Spec::parse(problem.task), Key(1));
      TrainSettings how;
      how.steps = 20;
      how.batch = problem.examples;
      how.optimizer.learning_rate = 1e-3;
      auto training = prepare<float>(task, Spec::parse(problem.model), Spec::parse(name), how, keys);
      for (auto& parameter : training.model->parameters())
        if (parameter.name.rfind("encoder.2.", 0) != 0)  // of a code: the exponentials of its scales would not be finite
          for (float& value : parameter.value) value *= parameter.name == "bits.logits" ? 100.f : 30.f;
      std::vector<int> first(problem.examples);
      for (int i = 0; i < problem.examples; ++i) first[i] = i;
      const auto batch = task->batch(Split::train, first);
      // Not for networks that start at even odds, with logits near zero, or with equal cells, nor if logits are logarithms of
      // distances.
      if (problem.task.rfind("bits", 0) != 0 && problem.task.rfind("images", 0) != 0 && problem.task != "not_gate" &&
          problem.model.rfind("turing_machine", 0) != 0 && problem.model.rfind("sentence_pair", 0) != 0)
        CHECK(choice_entropy<float>({}, *training.model, batch, 1e6, Key(3)).mean < 0.25);
      const auto result = train(training, how, keys);
      for (const auto& point : result.log) CHECK(std::isfinite(point.gradient_norm));
      CHECK(result.missed_hints == 0);
      ++trainings;
    }
  }
  CHECK(networks == 37);
  // pixel_attention, codebook, writer (two scenes), written words, transformer (three): no learned posterior; the first five and
  // ponderer (three scenes): no likelihood
  CHECK(trainings == 3 * networks - 8 - 8);
}

}  // namespace
}  // namespace hardgrad::testing::peaked_test
