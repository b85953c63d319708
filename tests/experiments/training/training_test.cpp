// Training and evaluation: the log is correct.
#include <doctest/doctest.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "core/support/machine.hpp"
#include "experiments/training/evaluation.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::testing::training_test {
using namespace measurement;
using namespace tasks;
using namespace training;
namespace {

const RunKeys keys{Key(1) / "init", Key(1) / "order", Key(1) / "noise"};
const Spec small_reader = Spec::parse("memory_reader[embedding=6,hops=2]");

std::shared_ptr<const Task> stories() { return make_task(Spec::parse("qa[stories=40,memory=6]"), Key(2)); }

TrainSettings settings(int steps) {
  TrainSettings s;
  s.steps = steps;
  s.batch = 8;
  s.log_every = 5;
  s.evaluate_every = 10;
  s.measure.replicates = 8;
  s.measure_at = {0, steps};
  return s;
}

TEST_CASE("the same keys give the same run, another noise gives another run from the same start") {
  const auto task = stories();
  const auto run = [&](RunKeys k) {
    auto training = prepare<float>(task, small_reader, Spec::parse("nvil[samples=2]"), settings(20), k);
    return train(training, settings(20), k);
  };
  const auto a = run(keys), b = run(keys);
  auto other = keys;
  other.noise = Key(77);
  const auto c = run(other);
  REQUIRE(a.log.size() == 4);
  for (std::size_t i = 0; i < a.log.size(); ++i) CHECK(a.log[i].loss == b.log[i].loss);
  CHECK(a.log.back().loss != c.log.back().loss);
  CHECK(a.evaluations.front().losses.at("expected_loss") == c.evaluations.front().losses.at("expected_loss"));
  CHECK(a.log[0].rows == 5 * 8 * 2 * 2);  // steps, examples, samples, hops
  CHECK(a.log.back().rows == a.rows);
  CHECK(a.log.back().attention_values == a.attention_values);
  CHECK(a.evaluations.size() == 3);  // 0, 10 and the end
  CHECK(a.measurements.size() == 2);
  CHECK(a.measurements[1].step == 20);
}

TEST_CASE("the time of training excludes that of measurements") {
  auto how = settings(4);
  how.evaluate_every = 0;
  how.measure_at = {0, 2};
  how.measure.replicates = 2000;  // a thousand times the work of the steps
  auto training = prepare<float>(stories(), small_reader, Spec::parse("rloo"), how, keys);
  double all = 0;
  TrainResult result;
  tbb::task_arena(1).execute([&] {  // the work of measurements stays in this thread, also on a busy machine
    const double start = thread_seconds();
    result = train(training, how, keys);
    all = thread_seconds() - start;
  });
  CHECK(result.log.back().seconds > 0);
  CHECK(result.log.back().seconds <= result.seconds);
  CHECK(result.log.back().cpu_seconds > 0);
  CHECK(result.log.back().cpu_seconds < all / 2);
}

TEST_CASE("keep_best restores the best parameters") {
  const auto task = stories();
  auto how = settings(60);
  how.optimizer = {.rule = UpdateRule::sgd, .learning_rate = 1.5};  // coarse steps: the loss sometimes rises
  how.keep_best = true;
  how.evaluate_every = 5;
  auto training = prepare<double>(task, small_reader, Spec::parse("exact"), how, keys);
  const auto result = train(training, how, keys);
  double best = 1e9;
  for (const auto& point : result.evaluations) best = std::min(best, point.losses.at("expected_loss"));
  CHECK(result.evaluations.back().losses.at("expected_loss") == doctest::Approx(best).epsilon(1e-12));
}

TEST_CASE("the best evaluation is chosen on one split and reported on another") {
  const std::shared_ptr<const Task> task = make_task(Spec::parse("qa[stories=80,memory=6,heldout=0.3,test=0.3]"), Key(2));
  auto how = settings(60);
  how.optimizer = {.rule = UpdateRule::sgd, .learning_rate = 1.5};
  how.keep_best = true;
  how.evaluate_every = 5;
  const auto run = [&](FinalSplit last) {
    how.final_split = last;
    auto training = prepare<double>(task, small_reader, Spec::parse("exact"), how, keys);
    auto result = train(training, how, keys);
    return std::pair(std::move(result), std::move(training));
  };
  const auto [same, kept] = run(FinalSplit::same);
  const auto [judged, chosen] = run(FinalSplit::test);
  REQUIRE(same.evaluations.size() == judged.evaluations.size());
  for (std::size_t i = 0; i + 1 < same.evaluations.size(); ++i)
    CHECK(same.evaluations[i].losses == judged.evaluations[i].losses);
  const auto values = [](const Training<double>& training) {
    std::vector<double> all;
    for (const auto& parameter : std::as_const(*training.model).parameters())
      all.insert(all.end(), parameter.value.begin(), parameter.value.end());
    return all;
  };
  CHECK(values(kept) == values(chosen));
  const auto on = [&](Split split) {
    return evaluate<double>(*task, *chosen.model, {}, {.split = split}, Key(3)).losses.at("expected_loss");
  };
  CHECK(on(Split::heldout) != on(Split::test));
  CHECK(same.evaluations.back().losses.at("expected_loss") == on(Split::heldout));
  CHECK(judged.evaluations.back().losses.at("expected_loss") == on(Split::test));
}

TEST_CASE("a split without examples neither chooses nor reports") {
  const std::shared_ptr<const Task> task = make_task(Spec::parse("qa[stories=40,memory=6,heldout=0,test=0]"), Key(2));
  auto how = settings(2);
  const auto said = [&] {
    auto training = prepare<double>(task, small_reader, Spec::parse("exact"), how, keys);
    try {
      train(training, how, keys);
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(said().empty());
  how.final_split = FinalSplit::test;
  CHECK(said() == "train.final_split: the task has no test examples to evaluate on");
  how.final_split = FinalSplit::same;
  how.patience = 2;
  CHECK(said() == "train.patience: the task has no heldout examples to evaluate on");
}

TEST_CASE("losses are enumerated for all examples or for none") {
  const auto task = stories();
  const auto model = make_model<double>(small_reader, task->dimensions(), Key(1));
  EvaluationSettings how;
  how.batch = 16;
  const auto whole = evaluate<double>(*task, *model, {}, how, Key(3));
  how.row_cap = 40;  // six sentences have 36 leaves: split into parts of one
  const auto parts = evaluate<double>(*task, *model, {}, how, Key(3));
  CHECK(parts.losses.at("expected_loss") == doctest::Approx(whole.losses.at("expected_loss")).epsilon(1e-12));
  CHECK(parts.losses.at("marginal_likelihood") == doctest::Approx(whole.losses.at("marginal_likelihood")).epsilon(1e-12));
  how.row_cap = 20;  // some examples are too large
  const auto none = evaluate<double>(*task, *model, {}, how, Key(3));
  CHECK(none.losses.count("expected_loss") == 0);
  CHECK(none.losses.count("sampled_loss") == 1);
  CHECK(none.losses.at("greedy_loss") == whole.losses.at("greedy_loss"));
}

TEST_CASE("bounds of samples: near their limit with many samples, above it with few, with all rows at once or in parts") {
  const auto task = make_task(Spec::parse("images[size=8,examples=400]"), Key(2));
  const auto model = make_model<double>(Spec::parse("belief_network[units=3,layers=2]"), task->dimensions(), Key(1), true);
  for (auto& parameter : model->parameters())  // makes the posterior differ from the prior and from the true posterior
    for (double& value : parameter.value) value *= 2;
  EvaluationSettings how;
  const auto of = [&](const Target& target, int samples) {
    how.bound_samples = samples;
    return evaluate<double>(*task, *model, target, how, Key(3)).losses;
  };
  for (const Target target : {"expected_loss", "elbo"}) {
    CAPTURE(target.name());
    const auto exact = of(target, 0);
    CHECK(exact.count("sampled_bound") == 0);
    CHECK(exact.count("sampled_elbo") == (target.name() == "elbo"));
    const double likelihood = exact.at("marginal_likelihood"), many = of(target, 2000).at("sampled_bound");
    CHECK(many == doctest::Approx(likelihood).epsilon(2e-3));
    CHECK(of(target, 1).at("sampled_bound") > likelihood + 0.5);
    how.row_cap = 6400;  // a hundred samples of 64 examples
    CHECK(of(target, 2000).at("sampled_bound") == doctest::Approx(likelihood).epsilon(2e-3));
    how.row_cap = 20000;
  }
  const auto elbo = of("elbo", 1);
  CHECK(elbo.at("sampled_elbo") == doctest::Approx(elbo.at("elbo")).epsilon(0.03));
  CHECK(elbo.at("sampled_bound") == doctest::Approx(elbo.at("elbo")).epsilon(0.03));  // with one sample it is the same bound
  CHECK(elbo.at("elbo") > elbo.at("marginal_likelihood") + 0.5);
}

TEST_CASE("a task with a bound has it in the last evaluation, and trains on newly drawn images") {
  const std::shared_ptr<const Task> task = make_task(Spec::parse("images[size=8,examples=40,bound_samples=5]"), Key(2));
  auto how = settings(10);
  how.evaluate_every = 5;
  how.measure_at = {};
  auto training = prepare<float>(task, Spec::parse("belief_network[units=30]"), Spec::parse("rloo[target=elbo]"), how, keys);
  const auto result = train(training, how, keys);
  REQUIRE(result.evaluations.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(result.evaluations[i].losses.count("sampled_bound") == (i == 2));
    CHECK(result.evaluations[i].losses.count("sampled_elbo") == 1);
    CHECK(result.evaluations[i].losses.count("elbo") == 0);  // 2^30 outcomes
  }
  // All images at every step: static ones have the same loss at the same parameters, dynamic ones do not.
  const auto losses = [&](const char* binarise) {
    auto alone = settings(2);
    alone.batch = 40;
    alone.log_every = 1;
    alone.evaluate_every = 0;
    alone.measure_at = {};
    alone.optimizer.learning_rate = 1e-30;
    std::shared_ptr<const Task> images =
        make_task(Spec::parse(std::string("images[size=8,examples=40,binarise=") + binarise + "]"), Key(2));
    auto still = prepare<double>(images, Spec::parse("belief_network[units=2]"), Spec::parse("exact"), alone, keys);
    const auto log = train(still, alone, keys).log;
    return std::abs(log[0].loss - log[1].loss);
  };
  CHECK(losses("static") < 1e-9);
  CHECK(losses("dynamic") > 1e-3);
}

TEST_CASE("stopping interrupts between steps") {
  auto alone = settings(50);  // evaluations and measurements poll, too
  alone.measure_at = {};
  alone.evaluate_every = 0;
  auto training = prepare<float>(stories(), small_reader, Spec::parse("rloo"), alone, keys);
  std::atomic<int> polls = 0;
  CHECK_THROWS_AS(train(training, alone, keys, [&] { return ++polls > 7; }), Interrupted);
  CHECK(training.step == 7);
}

std::vector<std::vector<float>> values_of(const Model<float>& model) {
  std::vector<std::vector<float>> values;
  for (const auto& parameter : model.parameters()) values.push_back(parameter.value.storage());
  return values;
}

TEST_CASE("stopping interrupts a large step, in the forward and in the backward pass") {
  auto alone = settings(1);
  alone.measure_at = {};
  alone.evaluate_every = 0;
  const auto spec = Spec::parse("translator[embedding=16,hidden=32,feed=sampled]");
  const std::shared_ptr<const Task> sentences = make_task(Spec::parse("translation[examples=40,words=5,max_length=6]"), Key(2));
  int polls = 0;
  auto whole = prepare<float>(sentences, spec, Spec::parse("exact"), alone, keys);
  train(whole, alone, keys, [&] { return ++polls < 0; });
  CHECK(polls > 20);
  for (const int last : {5, polls / 2, polls - 5}) {
    auto training = prepare<float>(sentences, spec, Spec::parse("exact"), alone, keys);
    const auto before = values_of(*training.model);
    int asked = 0;
    CHECK_THROWS_AS(train(training, alone, keys, [&] { return ++asked > last; }), Interrupted);
    CHECK(training.step == 0);
    CHECK(values_of(*training.model) == before);
    train(training, alone, keys);  // resumed, it is the same step
    CHECK(values_of(*training.model) == values_of(*whole.model));
  }
}

TEST_CASE("an unsupported estimator is rejected with a reason") {
  CHECK_THROWS_AS(prepare<float>(stories(), Spec::parse("not_gate"), Spec::parse("rloo"), settings(1), keys), UsageError);
}

}  // namespace
}  // namespace hardgrad::testing::training_test
