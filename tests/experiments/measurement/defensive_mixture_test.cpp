// Draws from the mixture, with their weights, have the moments of the law; and rare outcomes are found.
#include "experiments/measurement/defensive_mixture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/estimator/without_replacement/subset.hpp"
#include "experiments/measurement/draw.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/reference_gradient.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::defensive_mixture_test {
using namespace measurement;
namespace {

constexpr int many = 40000;

/// The weighted mean of f over the mixture, and its standard error; the mean weight is checked.
struct Mean {
  double value = 0, error = 0;
};
Mean mean_of(const MixturePlan& plan, const std::function<double(Randomness&)>& f) {
  double weights = 0, sum = 0, squares = 0, most = 0;
  for (std::uint64_t m = 0; m < many; ++m) {
    DefensiveMixture random(Key(3), m, plan);
    const double x = f(random), w = random.weight();
    weights += w;
    sum += w * x;
    squares += w * w * x * x;
    most = std::max(most, w);
  }
  CHECK(weights / many == doctest::Approx(1).epsilon(0.02));
  CHECK(most <= 2.0 + 1e-12);
  const double value = sum / many;
  return {value, std::sqrt((squares / many - value * value) / many)};
}

#define CHECK_MEAN(found, truth) CHECK(std::abs((found).value - (truth)) <= 4.5 * (found).error + 1e-12)

TEST_CASE("weighted means over the mixture are those of the law") {
  const std::vector<double> first{0.989, 0.01, 0.001, 0.0}, second{0.002, 0.998};
  // The law of the second draw depends on the first; after option 1 there is none.
  const auto both = [&](Randomness& random) {
    const int a = random.categorical(first, {.step = 0});
    CHECK(a < 3);
    if (a == 1) return 5.0;
    return 100.0 * a + 40.0 * (1 - random.categorical(second, {.step = 1}));
  };
  const double truth = 0.01 * 5 + 0.001 * 200 + 0.99 * 0.002 * 40;
  const auto plain = mean_of({}, both);
  for (const MixturePlan& plan : {MixturePlan{1, 2}, MixturePlan{1, 1}, MixturePlan{3, 5}, MixturePlan{1, 2, 1},
                                  MixturePlan{1, 0, 3}, MixturePlan{2, 2, 2}}) {
    CAPTURE(plan.draws);
    const auto mean = mean_of(plan, both);
    CHECK_MEAN(mean, truth);
    if (plan.examples == 1 && plan.draws == 2) CHECK(mean.error < 0.5 * plain.error);
  }
  // Two examples; one has more draws than planned.
  const auto two = [&](Randomness& random) {
    double sum = 0;
    std::uint32_t step = 0;
    for (std::uint32_t example : {7u, 9u, 9u, 9u}) sum += random.categorical(second, {.example = example, .step = step++}) == 0;
    return sum * sum;
  };
  CHECK_MEAN(mean_of({2, 2}, two), 4 * 0.002 + 12 * 0.002 * 0.002);
  // Whole samples, one or two of them flat, one more than planned.
  const auto samples = [&](Randomness& random) {
    double sum = 0;
    for (std::uint32_t example : {7u, 9u})
      for (std::uint32_t replica = 0; replica < 3; ++replica) {
        const int a = random.categorical(first, {.example = example, .replica = replica});
        sum += 10 * a + (a == 0 && random.categorical(second, {.example = example, .replica = replica, .step = 1}) == 0);
      }
    return sum;
  };
  CHECK_MEAN(mean_of({2, 2, 2}, samples), 6 * (10 * 0.01 + 20 * 0.001 + 0.989 * 0.002));
  CHECK_MEAN(mean_of({2, 0, 3}, samples), 6 * (10 * 0.01 + 20 * 0.001 + 0.989 * 0.002));
  // A certain option within a flat sample.
  const std::vector<double> certain{0.0, 1.0};
  CHECK_MEAN(mean_of({1, 1, 1}, [&](Randomness& random) { return double(random.categorical(certain, {})); }), 1);
  // Columns side by side.
  const std::vector<double> columns{0.99, 0.01, 0.5, 0.5, 0.003, 0.997};
  const auto three = [&](Randomness& random) {
    int option[3];
    random.categorical(columns, 2, std::vector<int>{2, 2, 2}, {}, option);
    return option[0] * 10.0 + option[1] + (1 - option[2]) * 30.0;
  };
  CHECK_MEAN(mean_of({1, 2}, three), 0.1 + 0.5 + 0.09);
}

TEST_CASE("continuous noise keeps its law") {
  const MixturePlan one{1, 1};
  for (const double edge : {-6.0, 0.3, 5.0}) {
    const auto above = [&](double x) { return mean_of(one, [&](Randomness& r) { return double(r.logistic({}, edge) > x); }); };
    for (const double x : {-8.0, -1.0, edge - 1e-3, edge, edge + 2, 9.0}) CHECK_MEAN(above(x), 1 / (1 + std::exp(x)));
  }
  const std::vector<double> breaks{0.004, 0.5};
  for (const double x : {0.001, 0.004, 0.3, 0.8})
    CHECK_MEAN(mean_of(one, [&](Randomness& r) { return double(r.uniform({}, {.breaks = breaks}) < x); }), x);
  for (const int power : {1, 2, 4})
    CHECK_MEAN(mean_of(one, [&](Randomness& r) { return std::pow(r.normal({}), power); }), power == 1 ? 0 : power == 2 ? 1 : 3);
}

TEST_CASE("a sample is drawn from the law that it is aimed at") {
  const std::vector<double> behaviour{1 - 2e-5, 2e-5}, trained{0.2, 0.8};
  const auto ratios = [&](Randomness& random) {
    double ratio = 1;
    for (std::uint32_t step = 0; step < 2; ++step) {
      random.aim(trained, {.step = step});
      const int z = random.categorical(behaviour, {.step = step});
      ratio *= trained[z] / behaviour[z];
    }
    return ratio * ratio;
  };
  const double each = 0.04 / (1 - 2e-5) + 0.64 / 2e-5;
  const auto mean = mean_of({1, 2, 1}, ratios);
  CHECK_MEAN(mean, each * each);
  CHECK(mean.error < 0.05 * each * each);
}

/// The squared distance of estimates from the truth: exactly, and by the mixture.
struct Distance {
  double exact = 0;
  Mean found;
};
Distance distance(const std::string& spec, const std::string& model_spec) {
  const auto model = model_of(model_spec);
  const auto batch = one_example();
  const auto estimator = estimator_of(spec, *model);
  const auto truth = exact_reference(estimator->target(), *model, batch, 1e6);
  const auto plan = mixture_plan(*estimator, *model, batch, Key(6));
  REQUIRE(plan.dominant);
  const auto exact = exact_moments(*estimator, *model, batch, truth.of_example, 1e6);
  double bias = 0;
  for (std::size_t i = 0; i < exact.mean.size(); ++i) bias += std::pow(exact.mean[i] - truth.gradient[i], 2);
  Tape<double> tape;
  std::vector<double> gradient(model->parameters().size());
  const auto squared = [&](Randomness& random) {
    tape.rewind();
    const auto estimate = estimator->draw({tape, *model, batch, random});
    differentiate(estimate.surrogate, model->parameters(), gradient);
    double sum = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) sum += std::pow(gradient[i] - truth.gradient[i], 2);
    return sum;
  };
  return {.exact = exact.trace + bias, .found = mean_of(plan, squared)};
}

TEST_CASE("samples without replacement that lack a dominant outcome have their share of the second moment") {
  const std::string options = "bits[bits=1,options=6,function=table,logit=8;0;0.5;-0.5;0.2;-1]";
  const std::string bits = "bits[bits=3,options=3,function=table,logit=7;0;0.5]";
  const std::string two = "bits[bits=1,options=6,function=table,logit=8;8.5;0.5;-0.5;0.2;-1]";  // two dominant outcomes
  for (const auto& [spec, model] :
       {std::pair{"unordered_set", options}, std::pair{"unordered_set", bits}, std::pair{"unordered_set[samples=3]", two}}) {
    const std::string named = std::string(spec) + " on " + model;
    CAPTURE(named);
    const auto [exact, found] = distance(spec, model);
    CHECK_MEAN(found, exact);
    CHECK(found.error < 0.04 * exact);
  }
}

TEST_CASE("thresholds of samples that lack a dominant outcome keep their law") {
  const auto model = model_of("bits[bits=1,options=4,function=table,logit=4.5;0;0.5;-0.5]");
  const auto batch = one_example();
  const auto plan = mixture_plan(*estimator_of("wor_importance[samples=2]", *model), *model, batch, Key(6));
  REQUIRE(plan.dominant);
  Tape<double> tape;
  // After the last outcome of the sample the others wait for an exponential time, whatever the sample.
  for (const double wait : {0.3, 1.0, 3.0})
    for (const bool lacks : {false, true}) {
      const auto waited = [&](Randomness& random) {
        tape.rewind();
        auto subset = Subset<double>::without_replacement({tape, *model, batch, random}, 2, false, true);
        const auto& beam = subset.groups().at(0).beams->at(0);
        double last = 0;
        bool found = false;
        for (const auto& z : beam.paths) {
          last = std::max(last, std::exp(-z.perturbed));
          found = found || z.answer[0] == 0;
        }
        const double waiting = beam.rest * (std::exp(-beam.threshold) - last);
        return found == lacks ? 0 : (waiting < wait) - (1 - std::exp(-wait));
      };
      CAPTURE(wait);
      CAPTURE(lacks);
      const auto mean = mean_of(plan, waited);
      CHECK_MEAN(mean, 0);
      CHECK(mean.error > 0);
    }
}

TEST_CASE("an empty plan draws from the law with weight 1") {
  const std::vector<double> p{0.97, 0.03};
  for (std::uint64_t m = 0; m < 200; ++m) {
    DefensiveMixture mixture(Key(4), m, {});
    KeyedRandomness plain(Key(4) / m);
    CHECK(mixture.categorical(p, {.step = 2}) == plain.categorical(p, {.step = 2}));
    CHECK(mixture.logistic({.step = 3}, -4) == plain.logistic({.step = 3}, -4));
    CHECK(mixture.weight() == 1);
    auto trial = DefensiveMixture::trial(Key(4), true);
    CHECK(trial.categorical(p, {.step = 2}) >= 0);
    CHECK(trial.seen().draws == 1);
    CHECK(trial.seen().samples == 1);
  }
}

/// The share of unmarked 95% intervals that hold the exact variance, and the mean variance over the exact one.
struct Coverage {
  int held = 0, runs = 0;
  double mean = 0;
};
Coverage coverage(const std::string& spec, const std::string& model_spec, bool seek) {
  const auto model = model_of(model_spec);
  const auto batch = one_example();
  const auto estimator = estimator_of(spec, *model);
  const auto truth = exact_reference(estimator->target(), *model, batch, 1e6);
  const auto exact = exact_moments(*estimator, *model, batch, truth.of_example, 1e5);
  Coverage result;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Key noise = Key(5) / seed;
    ReplicateSums sums(truth.gradient, 2, 256);
    draw(sums, *estimator, *model, batch, noise, seek ? mixture_plan(*estimator, *model, batch, noise) : MixturePlan{}, {});
    const ReplicateStatistics r(std::move(sums));
    const auto [low, high] = r.variance_interval(0.95);
    result.held += low <= exact.trace && exact.trace <= high;
    result.mean += r.variance() / exact.trace / 40;
    ++result.runs;
  }
  return result;
}

TEST_CASE("intervals of peaked networks hold the exact variance") {
  const std::string peaked = "bits[bits=3,options=5,function=table,logit=7;0;0.5;-0.5;0.2]";
  int held = 0, runs = 0, plain_held = 0;
  for (const std::string spec : {"reinforce", "rloo[samples=2]", "unordered_set", "straight_through", "sum_and_sample",
                                 "stratified[samples=2]", "systematic[samples=2]", "mvd"}) {
    CAPTURE(spec);
    const auto model = model_of(peaked);
    if (!why_unsupported(Spec::parse(spec), model->structure()).empty()) continue;
    const auto found = coverage(spec, peaked, true), plain = coverage(spec, peaked, false);
    CHECK(found.held >= 33);
    CHECK(found.mean == doctest::Approx(1).epsilon(0.1));
    held += found.held;
    runs += found.runs;
    plain_held += plain.held;
  }
  CHECK(runs >= 5 * 40);
  CHECK(held >= 0.9 * runs);
  CHECK(plain_held <= 0.9 * held);  // the wrong measurement is seen
}

/// The relative standard deviation of the estimated variance over sixty runs, with or without the mixture.
double spread(const std::string& spec, const std::string& model_spec, bool seek) {
  const auto model = model_of(model_spec);
  const auto batch = one_example();
  const auto estimator = estimator_of(spec, *model);
  double sum = 0, squares = 0;
  constexpr int runs = 60;
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    const Key noise = Key(8) / seed;
    ReplicateSums sums(std::vector<double>(model->parameters().size()), 0, 128);
    draw(sums, *estimator, *model, batch, noise, seek ? mixture_plan(*estimator, *model, batch, noise) : MixturePlan{}, {});
    const ReplicateStatistics r(std::move(sums));
    sum += r.variance();
    squares += r.variance() * r.variance();
  }
  return std::sqrt(squares * runs / (sum * sum) - 1);
}

TEST_CASE("the mixture costs little precision where no choice is peaked, and gains much where all are") {
  // 25 options of probability .04 each, relaxed bits, and numbers: draws that could be rare, but carry no more than others.
  for (const auto& [spec, model] :
       {std::pair{"rloo[samples=2]", "bits[bits=3,options=25,function=table]"},
        std::pair{"gumbel_softmax", "bits[bits=3,t=0.3]"}, std::pair{"reinforce", "bits[bits=4,t=0.3,logit=1]"},
        std::pair{"reinforce", "gaussians[columns=4,k=0.7,mean=0.1]"}}) {
    const std::string named = std::string(spec) + " on " + model;
    CAPTURE(named);
    CHECK(spread(spec, model, true) <= 1.45 * spread(spec, model, false));  // 1.3, and the error of sixty runs
  }
  const std::string peaked = "bits[bits=3,options=5,function=table,logit=7;0;0.5;-0.5;0.2]";
  CHECK(spread("rloo[samples=2]", peaked, true) <= 0.5 * spread("rloo[samples=2]", peaked, false));
}

}  // namespace
}  // namespace hardgrad::testing::defensive_mixture_test
