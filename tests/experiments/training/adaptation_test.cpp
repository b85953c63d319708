// Learned state of an estimator on a fixed network.
#include "experiments/training/adaptation.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>

#include "experiments/measurement/measure.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::testing::adaptation_test {
using namespace measurement;
using namespace tasks;
using namespace training;
namespace {

const RunKeys keys{Key(1) / "init", Key(1) / "order", Key(1) / "noise"};
const Spec bits = Spec::parse("bits[bits=2,t=0.3;0.6,logit=0.4;-1,reduce=sum]");

double variance(const std::string& name, int steps, double rate = 1e-2) {
  auto training = prepare<double>(make_task(Spec::parse("bits"), Key(2)), bits, Spec::parse(name), {}, keys);
  adapt(*training.estimator, *training.model, *training.task, {.steps = steps, .learning_rate = rate}, Key(3));
  MeasureSettings how;
  how.method = measurement::Method::exact;
  return measure(training.estimator_spec, *training.estimator, *training.model,
                 training.task->batch(Split::train, std::vector{0}), how, Key(4))
      .variance;
}

TEST_CASE("a moving average converges to the mean loss, and the variance to that of REINFORCE minus this mean") {
  // For bit d, f = sum (b - t)^2: E |(f - E f) grad log p|^2 in closed form, over four outcomes.
  const double logits[] = {0.4, -1}, t[] = {0.3, 0.6};
  double p[2], mean = 0, square = 0, gradient[2] = {};
  for (int d = 0; d < 2; ++d) p[d] = 1 / (1 + std::exp(-logits[d]));
  const auto at = [&](int b0, int b1) { return (b0 - t[0]) * (b0 - t[0]) + (b1 - t[1]) * (b1 - t[1]); };
  const auto chance = [&](int b0, int b1) { return (b0 ? p[0] : 1 - p[0]) * (b1 ? p[1] : 1 - p[1]); };
  for (int b0 : {0, 1})
    for (int b1 : {0, 1}) mean += chance(b0, b1) * at(b0, b1);
  for (int b0 : {0, 1})
    for (int b1 : {0, 1}) {
      const double f = at(b0, b1) - mean, score[] = {b0 - p[0], b1 - p[1]};
      for (int d = 0; d < 2; ++d) {
        square += chance(b0, b1) * f * f * score[d] * score[d];
        gradient[d] += chance(b0, b1) * f * score[d];
      }
    }
  const double wanted = square - gradient[0] * gradient[0] - gradient[1] * gradient[1];
  CHECK(variance("moving_baseline", 0) == doctest::Approx(variance("reinforce", 0)).epsilon(1e-12));  // nothing learned yet
  CHECK(variance("moving_baseline[decay=0.99]", 3000) == doctest::Approx(wanted).epsilon(0.05));
  CHECK(variance("reinforce", 500) == variance("reinforce", 0));  // it has no learned state
}

TEST_CASE("trained control variates and critics have less variance") {
  int compared = 0;
  for (const auto* name : {"nvil", "moving_baseline", "double_cv", "rodeo", "muprop"}) {
    CAPTURE(name);
    auto training = prepare<double>(make_task(Spec::parse("bits"), Key(2)), bits, Spec::parse(name), {}, keys);
    if (!learns(*training.estimator)) continue;
    const double before = variance(name, 0), after = variance(name, 1000);
    CHECK(after < before);
    ++compared;
  }
  CHECK(compared >= 4);
}

TEST_CASE("a copy has the learned state, and learns independently") {
  auto training = prepare<double>(make_task(Spec::parse("bits"), Key(2)), bits, Spec::parse("nvil"), {}, keys);
  auto& estimator = *training.estimator;
  adapt(estimator, *training.model, *training.task, {.steps = 20}, Key(3));
  const auto copy = copied(training.estimator_spec, estimator, training.model->structure());
  CHECK(copy->state() == estimator.state());
  const auto state = estimator.state();
  const auto first = [](Estimator<double>& e) { return e.own_parameters().begin()->value.storage(); };
  const auto weights = first(estimator);
  CHECK(first(*copy) == weights);
  adapt(*copy, *training.model, *training.task, {.steps = 20}, Key(5));
  CHECK(first(*copy) != weights);
  CHECK(first(estimator) == weights);
  CHECK(estimator.state() == state);
}

TEST_CASE("measurements with adaptation do not change training, bit by bit, and differ from those without") {
  const auto run = [&](int adapt) {
    TrainSettings settings;
    settings.steps = 30;
    settings.measure_at = {0, 30};
    settings.measure.method = measurement::Method::exact;
    settings.measure_adapt = adapt;
    auto training = prepare<double>(make_task(Spec::parse("bits"), Key(2)), bits, Spec::parse("nvil"), settings, keys);
    auto result = train(training, settings, keys);
    return std::pair{std::move(result), training.model->parameters().begin()->value.storage()};
  };
  const auto without = run(0), with = run(200);
  CHECK(without.second == with.second);
  REQUIRE(with.first.measurements.size() == 2);
  CHECK(without.first.measurements[0].measurement.variance > with.first.measurements[0].measurement.variance);
}

TEST_CASE("adaptation stops on request") {
  auto training = prepare<double>(make_task(Spec::parse("bits"), Key(2)), bits, Spec::parse("nvil"), {}, keys);
  std::atomic<int> polled = 0;
  CHECK_THROWS_AS(
      adapt(*training.estimator, *training.model, *training.task, {.steps = 1000}, Key(3), [&] { return ++polled > 5; }),
      Interrupted);
  CHECK(polled == 6);
}

}  // namespace
}  // namespace hardgrad::testing::adaptation_test
