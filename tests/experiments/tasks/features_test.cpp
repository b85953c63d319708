// Features: which are planted, how often the label is 1, and the counts of the metrics.
#include <cmath>
#include <numeric>

#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::features_test {
using namespace tasks;

namespace {

constexpr int count = 4000;

std::unique_ptr<Task> make(const std::string& arguments) {
  return make_task(Spec::parse("features[" + arguments + "]"), Key(1));
}
Batch first(const Task& task) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return task.batch(Split::train, all);
}

/// Log odds of the label, and the planted features, from the formulas of the task's head (its x_1 is x[0]).
std::pair<double, std::vector<int>> recomputed(const std::string& kind, std::span<const double> x) {
  const auto skin = [&] { return x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3] - 4; };
  const auto additive = [&](int i) {
    return -100 * std::sin(2 * x[i]) + 2 * std::abs(x[i + 1]) + x[i + 2] + std::exp(-x[i + 3]);
  };
  if (kind == "xor") return {x[0] * x[1], {0, 1}};
  if (kind == "orange_skin") return {skin(), {0, 1, 2, 3}};
  if (kind == "additive") return {additive(0), {0, 1, 2, 3}};
  const int decides = x[0] > 0 ? x[1] > 0 ? 5 : 4 : x[1] > 0 ? 3 : 2;
  return {5 * x[decides], {0, 1, decides}};
}

}  // namespace

TEST_CASE("features: labels and planted features follow from the numbers") {
  for (const std::string kind : {"xor", "orange_skin", "additive", "regimes"}) {
    CAPTURE(kind);
    const auto sure = first(*make("sure=true,kind=" + kind)), drawn = first(*make("kind=" + kind));
    CHECK(sure.numbers("x").storage() == drawn.numbers("x").storage());
    double off = 0, variance = 0;
    for (int b = 0; b < count; ++b) {
      const auto [log_odds, planted] = recomputed(kind, row_of(sure.numbers("x"), b));
      CHECK(sure.ints("label")(b) == (log_odds > 0));
      std::vector<int> indicator(10);
      for (int i : planted) indicator[i] = 1;
      const auto seen = row_of(sure.ints("planted"), b);
      CHECK(std::equal(seen.begin(), seen.end(), indicator.begin(), indicator.end()));
      const double p = 1 / (1 + std::exp(-log_odds));
      off += drawn.ints("label")(b) - p;
      variance += p * (1 - p);
    }
    CHECK(std::abs(off) < 4.5 * std::sqrt(variance));
    CHECK(variance > 1);
  }
}

TEST_CASE("features: the sign of the tenth number switches between two rules") {
  const auto batch = first(*make("kind=switch,sure=true"));
  int skins = 0, right = 0;
  for (int b = 0; b < count; ++b) {
    const auto x = row_of(batch.numbers("x"), b);
    const auto planted = row_of(batch.ints("planted"), b);
    const bool skin = planted[0] == 1;
    skins += skin;
    right += skin == (x[9] > 0);  // N(3, 1) or N(-3, 1)
    for (int i = 0; i < 10; ++i) CHECK(planted[i] == (i == 9 || (skin ? i < 4 : i >= 4 && i < 8)));
    std::vector<double> of(x.begin() + (skin ? 0 : 4), x.end());
    CHECK(batch.ints("label")(b) == (recomputed(skin ? "orange_skin" : "additive", of).first > 0));
  }
  CHECK(std::abs(skins - count / 2) < 4.5 * std::sqrt(count) / 2);
  CHECK(right > 0.99 * count);
  CHECK_THROWS_WITH_AS(make("kind=switch,features=9"), doctest::Contains("kind=switch needs at least 10 features, got 9"),
                       UsageError);
}

TEST_CASE("features: metrics count the picks of subsets, too") {
  const auto task = make("kind=xor");
  const auto batch = task->batch(Split::test, {0, 1});
  const auto& label = batch.ints("label").storage();
  Observation seen{full<int>({2, 1}, label[0]), full<int>({2, 3}, -1)};
  seen.choices.storage() = {0, 1, 5, 1, 5, -1};
  auto metrics = task->metrics();
  task->score(batch, seen, metrics);
  CHECK(metrics[0].value() == (label[0] == label[1] ? 1 : 0.5));
  CHECK(metrics[1].value() == 3.0 / 5);
  CHECK(metrics[2].value() == doctest::Approx(std::exp(0.2 * std::log(5) + 2 * 0.4 * std::log(2.5))));
  CHECK(std::isnan(task->metrics()[2].value()));
}

}  // namespace hardgrad::testing::features_test
