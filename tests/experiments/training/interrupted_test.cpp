// Training that is repeatedly killed and resumed from its file ends with the same bits, for every kind of ending.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/support/error.hpp"
#include "experiments/storage/partial_cell.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::testing::interrupted_test {
using namespace measurement;
using namespace storage;
using namespace tasks;
using namespace training;
namespace {

const RunKeys keys{Key(1) / "init", Key(1) / "order", Key(1) / "noise"};

std::shared_ptr<const Task> stories() { return make_task(Spec::parse("qa[stories=40,memory=6]"), Key(2)); }

template <class T>
Training<T> fresh(const TrainSettings& settings, const std::string& estimator = "nvil[samples=2]") {
  static const auto task = stories();
  return prepare<T>(task, Spec::parse("memory_reader[embedding=4,hops=2]"), Spec::parse(estimator), settings, keys);
}

TrainSettings many_things(int steps) {
  TrainSettings s;
  s.steps = steps;
  s.batch = 4;
  s.log_every = 7;
  s.evaluate_every = 10;
  s.evaluate_examples = 8;
  s.keep_best = true;
  s.optimizer.learning_rate = 0.03;
  s.optimizer.schedule = RateSchedule::cosine;
  s.optimizer.warmup = 5;
  s.measure.replicates = 4;
  s.measure.directions = 1;
  s.measure_batch = 2;
  s.measure_at = {0, steps / 2, steps};
  return s;
}

std::uint64_t bits(double x) {
  std::uint64_t b;
  std::memcpy(&b, &x, sizeof b);
  return b;
}

/// All values except times, as bits.
template <class T>
std::vector<std::uint64_t> numbers(const Training<T>& training, const TrainResult& result) {
  std::vector<std::uint64_t> all;
  const auto add = [&](double x) { all.push_back(bits(x)); };
  for (const auto& point : result.log)
    for (double x : {double(point.step), point.loss, point.gradient_norm, point.rows, point.attention_values}) add(x);
  for (const auto& point : result.evaluations) {
    add(point.step);
    for (const auto* map : {&point.losses, &point.metrics})
      for (const auto& [name, value] : *map) add(value);
  }
  for (const auto& [step, m] : result.measurements) {
    add(step);
    for (double x : {m.variance, m.squared_bias, m.cosine, m.bias_p_value, m.rows, m.estimand_norm}) add(x);
    for (double x : m.mean) add(x);
    for (const auto& [name, ends] : m.intervals) add(ends[0]), add(ends[1]);
    for (const auto& [name, value] : m.variance_by_group) add(value);
  }
  for (double x : {result.rows, result.attention_values, result.tape_bytes, result.missed_hints}) add(x);
  for (const auto& p : training.model->parameters())
    for (T x : p.value) add(x);
  for (double x : training.optimizer->state()) add(x);
  return all;
}

/// Stopped after a few polls, saved (every fourth time in a file) and resumed, until it ends: between steps, within
/// measurements and evaluations, also twice at one place.
template <class T>
std::vector<std::uint64_t> torn(const TrainSettings& settings, int& pieces, const std::string& estimator = "nvil[samples=2]") {
  const auto path = std::filesystem::temp_directory_path() / ("hardgrad_torn_" + std::to_string(getpid()) + ".h5");
  std::optional<PartialCell> saved;
  for (pieces = 1;; ++pieces) {
    auto training = fresh<T>(settings, estimator);
    if (saved) resume(*saved, training, "saved");
    std::atomic<int> polls = 0;
    // Later pieces may poll more often, so training ends even if one measurement polls often.
    const auto stop = [&] { return ++polls > 7 * pieces % 11 + pieces / 20; };
    REQUIRE(pieces < 5000);
    try {
      const auto result = train(training, settings, keys, stop);
      std::filesystem::remove(path);
      return numbers(training, result);
    } catch (const Interrupted&) {
      saved.emplace();
      saved->record.cell_hash = "0123456789abcdef";
      snapshot(training, *saved);
      if (pieces % 4) continue;
      write_partial_cell(path, *saved);
      CHECK(peek_partial_cell(path).step == training.step);
      saved = read_partial_cell(path);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("training interrupted more than fifty times ends with the same bits", T, float, double) {
  const auto settings = many_things(120);
  auto whole = fresh<T>(settings);
  const auto result = train(whole, settings, keys);
  CHECK(result.ended_by == "steps");
  CHECK(result.target == "expected_loss");
  CHECK(result.evaluations.size() == 13);
  CHECK(result.measurements.size() == 3);
  int pieces = 0;
  CHECK(torn<T>(settings, pieces) == numbers(whole, result));
  CHECK(pieces > 50);
  // A variant that must differ: one step more.
  auto other = many_things(121);
  auto longer = fresh<T>(other);
  CHECK(numbers(longer, train(longer, other, keys)) != numbers(whole, result));
}

TEST_CASE("training that uses its batches again ends with the same bits, too") {
  const std::string estimator = "policy_gradient[samples=2]";
  auto settings = many_things(40);
  settings.reuse = 3;
  auto whole = fresh<double>(settings, estimator);
  const auto result = train(whole, settings, keys);
  int pieces = 0;
  CHECK(torn<double>(settings, pieces, estimator) == numbers(whole, result));
  CHECK(pieces > 10);
  settings.reuse = 2;
  auto other = fresh<double>(settings, estimator);
  CHECK(numbers(other, train(other, settings, keys)) != numbers(whole, result));
}

TEST_CASE("annealed training ends with the same bits, too") {
  const std::string estimator = "entropy_regularised[samples=2,lambda_e=0.5]";
  auto settings = many_things(40);
  settings.anneal = "lambda_e=0.01";
  auto whole = fresh<double>(settings, estimator);
  const auto result = train(whole, settings, keys);
  int pieces = 0;
  CHECK(torn<double>(settings, pieces, estimator) == numbers(whole, result));
  CHECK(pieces > 10);
}

TEST_CASE("a saved training of another network is rejected") {
  const auto settings = many_things(20);
  auto training = fresh<double>(settings);
  std::atomic<int> polls = 0;
  CHECK_THROWS_AS(train(training, settings, keys, [&] { return ++polls > 30; }), Interrupted);
  PartialCell partial;
  snapshot(training, partial);
  auto other = fresh<double>(settings, "rloo");
  CHECK_THROWS_AS(resume(partial, other, "file"), InputError);
  static const auto task = stories();
  auto larger =
      prepare<double>(task, Spec::parse("memory_reader[embedding=5,hops=2]"), Spec::parse("nvil[samples=2]"), settings, keys);
  CHECK_THROWS_AS(resume(partial, larger, "file"), InputError);
}

TEST_CASE("training ends at the first of its limits, and reports which") {
  TrainSettings s;
  s.steps = 60;
  s.batch = 4;
  s.log_every = 8;
  s.evaluate_every = 5;
  s.evaluate_examples = 8;
  s.optimizer.learning_rate = 0.03;
  s.measure_at = {60};  // the end, at any step
  s.measure.replicates = 2;
  const auto run = [&](const TrainSettings& how) {
    auto training = fresh<double>(how, "rloo[samples=2]");
    auto result = train(training, how, keys);
    CHECK(result.evaluations.back().step == training.step);
    CHECK(result.measurements.size() == 1);
    CHECK(result.measurements.back().step == training.step);
    CHECK((result.log.empty() ? 0 : result.log.back().step) == training.step);
    return result;
  };
  const auto whole = run(s);
  CHECK(whole.ended_by == "steps");
  const double a_step = whole.rows / 60;

  auto rows = s;
  rows.rows = 20 * a_step;
  const auto by_rows = run(rows);
  CHECK(by_rows.ended_by == "rows");
  CHECK(by_rows.log.back().step == 20);
  CHECK(by_rows.rows == rows.rows);
  rows.rows += 1;
  CHECK(run(rows).log.back().step == 21);

  auto values = s;
  values.attention_values = whole.attention_values / 60 * 12.5;
  const auto by_values = run(values);
  CHECK(by_values.ended_by == "attention_values");
  CHECK(by_values.log.back().step == 13);
  values.rows = 10 * a_step;  // the nearer limit
  CHECK(run(values).ended_by == "rows");

  auto seconds = s;
  seconds.cpu_seconds = 1e-12;  // already exceeded at the start
  const auto by_seconds = run(seconds);
  CHECK(by_seconds.ended_by == "cpu_seconds");
  CHECK(by_seconds.log.size() <= 1);
  seconds.cpu_seconds = 1e9;
  CHECK(run(seconds).ended_by == "steps");

  auto target = s;
  target.target_loss = whole.evaluations.at(4).losses.at("expected_loss");
  const auto by_target = run(target);
  CHECK(by_target.ended_by == "target_loss");
  CHECK(by_target.evaluations.back().losses.at("expected_loss") <= target.target_loss);
  CHECK(by_target.log.back().step <= 20);

  auto patient = s;
  patient.optimizer.learning_rate = 1e-300;  // no evaluation improves
  patient.patience = 3;
  const auto by_patience = run(patient);
  CHECK(by_patience.ended_by == "patience");
  CHECK(by_patience.log.back().step == 15);
  patient.patience = 0;
  CHECK(run(patient).ended_by == "steps");
}

TEST_CASE("patience and the best evaluation use the monitored quantity, whether more or less of it is better") {
  TrainSettings s;
  s.steps = 300;
  s.batch = 8;
  s.optimizer.learning_rate = .03;
  s.evaluate_every = 5;
  s.evaluate_examples = 20;
  const auto run = [](const TrainSettings& settings) {
    auto training = fresh<double>(settings, "exact");
    return train(training, settings, keys);
  };
  const auto whole = run(s);
  s.patience = 4;
  const auto value = [](const EvaluationPoint& point, const std::string& what) {
    return what == "accuracy" ? -point.metrics.at(what) : point.losses.at("expected_loss");
  };
  // The step of the end, and that of the best evaluation before it, computed explicitly.
  const auto expected = [&](const std::string& what) {
    double best = std::numeric_limits<double>::infinity();
    int stale = 0, at = 0;
    for (const auto& point : whole.evaluations) {
      if (value(point, what) < best)
        best = value(point, what), stale = 0, at = point.step;
      else if (++stale == s.patience)
        return std::pair{point.step, at};
    }
    return std::pair{s.steps, at};
  };
  for (const std::string monitor : {"accuracy", "loss", "expected_loss"}) {
    CAPTURE(monitor);
    s.monitor = monitor;
    s.keep_best = true;
    const auto [end, at] = expected(monitor);
    const auto result = run(s);
    CHECK(result.ended_by == "patience");
    REQUIRE(end < s.steps);
    CHECK(result.evaluations.back().step == end);
    // The kept parameters are those of the best evaluation.
    for (const auto& point : whole.evaluations)
      if (point.step == at) CHECK(result.evaluations.back().losses.at("expected_loss") == point.losses.at("expected_loss"));
  }
  CHECK(expected("accuracy") != expected("loss"));
  s.monitor = "soft";  // a loss that exists only for soft attention
  CHECK_THROWS_WITH_AS(run(s), doctest::Contains("train.monitor: its evaluation has no soft; it has: "), UsageError);
  s.monitor = "acuracy";
  CHECK_THROWS_WITH_AS(run(s), doctest::Contains("did you mean \"accuracy\"?"), UsageError);
}

TEST_CASE("a limit of seconds counts those before an interruption") {
  TrainSettings s;
  s.steps = 1'000'000;
  s.batch = 4;
  s.cpu_seconds = 1e9;
  auto training = fresh<double>(s, "rloo");
  CHECK_THROWS_AS(train(training, s, keys, [&] { return training.step >= 20; }), Interrupted);
  CHECK(training.progress.cpu_seconds > 0);
  CHECK(share_done(training, s) < 1e-4);
  PartialCell partial;
  snapshot(training, partial);
  auto again = fresh<double>(s, "rloo");
  resume(partial, again, "file");
  CHECK(again.progress.cpu_seconds == training.progress.cpu_seconds);
  s.cpu_seconds = training.progress.cpu_seconds / 2;  // already used
  const auto result = train(again, s, keys);
  CHECK(result.ended_by == "cpu_seconds");
  CHECK(result.log.back().step == 20);
}

TEST_CASE("the remaining time is estimated from the duration of steps, measurements and evaluations") {
  TrainSettings s;
  s.steps = 100;
  s.measure_at = {0, 50, 100};
  s.evaluate_every = 10;
  auto training = fresh<double>(s, "rloo");
  CHECK_FALSE(seconds_left(training, s));
  training.step = 25;
  training.progress.result.seconds = 5;  // a fifth of a second each
  training.progress.result.measurements.resize(1);
  training.progress.measuring = 7;
  training.progress.result.evaluations.resize(3);
  training.progress.evaluating = 3;
  CHECK(share_done(training, s) == doctest::Approx(0.25));
  CHECK(*seconds_left(training, s) == doctest::Approx(15 + 2 * 7 + 1 + 7.5));
  s.rows = 100;
  training.progress.result.rows = 50;  // half of the nearer limit
  CHECK(*seconds_left(training, s) == doctest::Approx(5 + 2 * 7 + 1 + 2.5));
}

}  // namespace hardgrad::testing::interrupted_test
