// The contract: every estimator on every model gives a finite, reproducible estimate that does not depend on the number
// of threads, has its target's gradient as mean if it says so, or says why it cannot work.
#include <doctest/doctest.h>
#include <tbb/task_arena.h>

#include <cmath>

#include "experiments/benchmarks/problems.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad {
namespace {

using benchmarks::Problem;
using benchmarks::Setting;

template <class T>
std::vector<double> one_gradient(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Key key) {
  Tape<T> tape;
  KeyedRandomness random(key);
  const auto estimate = estimator.estimate({tape, model, batch, random});
  tape.backward(estimate.surrogate);
  std::vector<double> gradient(model.parameters().size());
  tape.add_gradient(model.parameters(), std::span<double>(gradient));
  return gradient;
}

bool finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
}

/// Calls f(problem, entry) for every pair.
template <class F>
void for_every_pair(F&& f) {
  for (const auto& problem : benchmarks::problems())
    for (const auto& [name, entry] : Estimators::instance().entries()) {
      CAPTURE(problem.name);
      CAPTURE(name);
      f(problem, entry);
    }
}

TEST_CASE("an estimate is finite and reproducible in both precisions, or refused with a reason") {
  for_every_pair([](const Problem& problem, const EstimatorEntry& entry) {
    const Setting setting(problem, entry.posterior);
    const auto spec = Spec::parse(entry.name);
    const auto& structure = setting.model->structure();
    if (const auto reason = unsupported(spec, structure); !reason.empty()) {
      MESSAGE(problem.name << " x " << entry.name << " skipped: " << reason);
      CHECK_THROWS_AS(make_estimator<float>(spec, structure, Key(1)), UsageError);
      return;
    }
    const auto estimator = make_estimator<float>(spec, structure, Key(1));
    const auto first = one_gradient(*estimator, *setting.model, setting.batch, Key(2));
    CHECK(finite(first));
    CHECK(first == one_gradient(*estimator, *setting.model, setting.batch, Key(2)));
    const auto dimensions = setting.task->dimensions();
    const auto model = make_model<double>(Spec::parse(problem.model), dimensions, Key(1) / "init", entry.posterior);
    const auto wide = make_estimator<double>(spec, structure, Key(1));
    CHECK(finite(one_gradient(*wide, *model, setting.batch, Key(2))));
  });
}

TEST_CASE("a measurement is the same for any number of threads") {
  for_every_pair([](const Problem& problem, const EstimatorEntry& entry) {
    const Setting setting(problem, entry.posterior);
    const auto spec = Spec::parse(entry.name);
    if (!unsupported(spec, setting.model->structure()).empty()) return;
    const auto estimator = make_estimator<float>(spec, setting.model->structure(), Key(1));
    MeasureSettings settings;
    settings.replicates = 40;
    Measurement alone, together;
    tbb::task_arena(1).execute([&] { alone = measure(spec, *estimator, *setting.model, setting.batch, settings, Key(3)); });
    tbb::task_arena(4).execute([&] { together = measure(spec, *estimator, *setting.model, setting.batch, settings, Key(3)); });
    CHECK(alone.mean == together.mean);
    CHECK(alone.variance == together.variance);
    const bool unknown = std::isnan(alone.squared_bias) && std::isnan(together.squared_bias);  // a truth beyond reach
    CHECK((unknown || alone.squared_bias == together.squared_bias));
    CHECK(alone.rows == together.rows);
  });
}

TEST_CASE("every unbiased estimator passes the bias test on every model") {
  for_every_pair([](const Problem& problem, const EstimatorEntry& entry) {
    if (!entry.unbiased) return;
    const Setting setting(problem, entry.posterior);
    const auto spec = Spec::parse(entry.name);
    if (!unsupported(spec, setting.model->structure()).empty()) return;
    const auto model = make_model<double>(Spec::parse(problem.model), setting.task->dimensions(), Key(1) / "init", entry.posterior);
    const auto estimator = make_estimator<double>(spec, model->structure(), Key(1));
    MeasureSettings settings;
    settings.replicates = 300;
    const auto m = measure(spec, *estimator, *model, setting.batch, settings, Key(4));
    CAPTURE(m.variance);
    CAPTURE(m.squared_bias);
    if (needs_outcomes(m.target) && m.estimand != "enumerated") {
      MESSAGE(problem.name << " x " << entry.name << ": too many multisets of outcomes for an exact gradient");
      return;
    }
    CHECK(m.estimand == "enumerated");
    CHECK(m.bias_p_value > 1e-5);  // Bonferroni over the hundred-odd pairs
  });
}

TEST_CASE("training learns: the not_gate and bits go down their exact losses") {
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
    const double before = exact_truth<double>({}, *training.model, batch, 100).value;
    const auto result = train(training, settings, keys);
    CHECK(result.log.size() == 30);
    CHECK(exact_truth<double>({}, *training.model, batch, 100).value < 0.6 * before);
  }
}

}  // namespace
}  // namespace hardgrad
