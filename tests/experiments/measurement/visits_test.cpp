// The visits of one example are divided into parts for the threads.
#include <doctest/doctest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <cmath>
#include <map>

#include "experiments/measurement/noise_enumerator.hpp"
#include "experiments/measurement/outcome_visits.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::visits_test {
using namespace measurement;
namespace {

using verification::Recurrent;

/// A visit: the options drawn, and its probability.
struct Visit {
  std::vector<int> options;
  double weight;
  bool operator==(const Visit&) const = default;
};

/// Draws of two samples whose number, and whose numbers of options, depend on earlier options.
std::vector<int> draws(Randomness& random) {
  std::vector<int> options;
  for (std::uint32_t step = 0; step < 3; ++step)
    for (std::uint32_t sample = 0; sample < 2; ++sample) {
      const int before = step == 0 ? 0 : options[options.size() - 2];
      if (before == 3) continue;
      const std::vector<double> p = before == 1 ? std::vector{0.25, 0.0, 0.75} : std::vector{0.1, 0.2, 0.3, 0.4};
      options.push_back(random.categorical(p, {.replica = sample, .step = step}));
    }
  return options;
}

enum class Mistake { none, lost, twice };

void visit_all(NoiseEnumerator enumerator, std::size_t depth, Mistake mistake, std::vector<Visit>& all) {
  const auto visit = [&] {
    enumerator.begin();
    auto options = draws(enumerator);
    all.push_back({std::move(options), enumerator.weight()});
  };
  visit();
  auto others = enumerator.divide(depth);
  if (!others.empty() && mistake == Mistake::lost) others.pop_back();
  if (!others.empty() && mistake == Mistake::twice) others.push_back(others.front());
  while (enumerator.next()) visit();
  for (auto& other : others) visit_all(std::move(other), depth, Mistake::none, all);
}

std::vector<Visit> visits(bool exchangeable, std::size_t depth, Mistake mistake = Mistake::none) {
  std::vector<Visit> all;
  visit_all(NoiseEnumerator(exchangeable), depth, mistake, all);
  return all;
}

double total(const std::vector<Visit>& visits) {
  double sum = 0;
  for (const auto& visit : visits) sum += visit.weight;
  return sum;
}

TEST_CASE("the parts of a replay have each of its visits once, in its order") {
  for (const bool exchangeable : {false, true}) {
    CAPTURE(exchangeable);
    const auto whole = visits(exchangeable, 0);
    CHECK(whole.size() > 100);
    CHECK(total(whole) == doctest::Approx(1));
    for (const std::size_t depth : {1, 2, 3, 5, 6, 9}) {
      CAPTURE(depth);
      CHECK(visits(exchangeable, depth) == whole);
      CHECK(total(visits(exchangeable, depth, Mistake::lost)) < 1 - 1e-8);
      CHECK(total(visits(exchangeable, depth, Mistake::twice)) > 1 + 1e-8);
    }
  }
}

TEST_CASE("a replay of few visits is not divided, one of many into 32 parts or more") {
  const auto depth = [](int bits, double visits) {
    NoiseEnumerator enumerator(false);
    enumerator.begin();
    for (int i = 0; i < bits; ++i) enumerator.categorical(std::vector{0.5, 0.5}, {.step = static_cast<std::uint32_t>(i)});
    return enumerator.depth_of_parts(visits);
  };
  CHECK(depth(4, 16) == 0);
  CHECK(depth(5, 32) == 0);
  CHECK(depth(7, 128) == 2);
  CHECK(depth(10, 1024) == 5);
  CHECK(depth(20, 1048576) == 5);
  CHECK(depth(3, 1e6) == 3);  // few draws of many visits: samples of a multiset
}

TEST_CASE("groups of numbers have the mean and the covariance of all") {
  const std::vector<std::pair<double, std::vector<double>>> numbers = {
      {0.1, {1, 1e8}}, {0.0, {7, 0}}, {0.25, {-2, 1e8 + 1}}, {0.3, {4, 1e8 - 2}}, {0.35, {0.5, 1e8}}};
  const Weighted none{.mean = {0, 0}, .variances = {0, 0}, .covariance = {0, 0, 0, 0}};
  auto whole = none;
  for (const auto& [weight, x] : numbers) whole.add(weight, x);
  for (std::size_t cut = 0; cut <= numbers.size(); ++cut) {
    CAPTURE(cut);
    auto first = none, second = none;
    for (std::size_t i = 0; i < numbers.size(); ++i) (i < cut ? first : second).add(numbers[i].first, numbers[i].second);
    first.join(second);
    CHECK(first.seen == doctest::Approx(1).epsilon(1e-15));
    for (std::size_t i = 0; i < 2; ++i) CHECK(first.mean[i] == doctest::Approx(whole.mean[i]).epsilon(1e-14));
    for (std::size_t i = 0; i < 2; ++i) CHECK(first.variances[i] == doctest::Approx(whole.variances[i]).epsilon(1e-7));
    for (std::size_t i = 0; i < 4; ++i) CHECK(first.covariance[i] == doctest::Approx(whole.covariance[i]).epsilon(1e-7));
  }
  auto equal = none, more = none;
  for (const double weight : {1e-300, 0.3, 0.1}) equal.add(weight, {0.1, 3});
  for (const double weight : {0.2, 0.4}) more.add(weight, {0.1, 3});
  equal.join(more);
  CHECK(equal.variances == std::vector<double>{0, 0});
}

/// Given options in turn, with the product of their probabilities.
struct Given final : Randomness {
  explicit Given(std::vector<int> given) : options(std::move(given)) {}
  using Randomness::categorical;
  int categorical(std::span<const double> p, Draw) override {
    weight *= p[options.at(next)];
    return options[next++];
  }
  double uniform(Draw, const Pieces&) override { throw Bug("no number is given"); }
  bool enumerates() const override { return true; }
  std::vector<int> options;
  std::size_t next = 0;
  double weight = 1;
};

TEST_CASE("moments in parts are those of a plain enumeration in two passes") {
  constexpr int bits = 9;
  const auto model = model_of("bits[bits=9,t=0.3,logit=0.4;-1;0.2;2;0;-0.3;0.9;1.3;-2]");
  const auto estimator = estimator_of("reinforce", *model);
  const auto truth = exact_reference({}, *model, one_example(), 1e6);
  std::vector<double> weights;
  std::vector<std::vector<double>> all;
  Tape<double> tape;
  std::vector<double> d(bits);
  for (int z = 0; z < 1 << bits; ++z) {
    std::vector<int> options;
    for (int i = 0; i < bits; ++i) options.push_back(z >> i & 1);
    Given given(options);
    tape.rewind();
    const auto estimate = estimator->draw({.tape = tape, .model = *model, .batch = one_example(), .random = given});
    differentiate(estimate.surrogate, model->parameters(), d);
    REQUIRE(given.next == bits);
    weights.push_back(given.weight);
    all.push_back(d);
  }
  std::vector<double> mean(bits), covariance(bits * bits);
  for (std::size_t z = 0; z < all.size(); ++z)
    for (int i = 0; i < bits; ++i) mean[i] += weights[z] * all[z][i];
  for (std::size_t z = 0; z < all.size(); ++z)
    for (int i = 0; i < bits * bits; ++i)
      covariance[i] += weights[z] * (all[z][i / bits] - mean[i / bits]) * (all[z][i % bits] - mean[i % bits]);

  const auto m = exact_moments(*estimator, *model, one_example(), truth.of_example, 1e6, true);
  CHECK(m.outcomes == 1 << bits);
  double trace = 0;
  for (int i = 0; i < bits; ++i) trace += covariance[i * bits + i];
  CHECK(m.trace == doctest::Approx(trace).epsilon(1e-13));
  for (int i = 0; i < bits; ++i) CHECK(std::abs(m.mean[i] - mean[i]) < 1e-14);
  for (int i = 0; i < bits * bits; ++i) CHECK(std::abs(m.covariance[i] - covariance[i]) < 1e-13 * trace);
}

template <class F>
void with_threads(int threads, F f) {
  const tbb::global_control enough(tbb::global_control::max_allowed_parallelism, 4);  // independent of the machine
  tbb::task_arena(threads).execute(f);
}

TEST_CASE("exact moments of an example: the same bits with any number of threads") {
  struct Case {
    std::string estimator;
    double visits;  // at least
  };
  const Recurrent<double> recurrent(true);
  const auto bits = model_of("bits[bits=8,t=0.3,logit=0.4]"), two = model_of("bits[bits=2,t=0.3,logit=0.4]"),
             normal = model_of("gaussians[columns=2]");
  const auto compare = [](const Model<double>& model, const Batch& batch, const Case& one) {
    CAPTURE(one.estimator);
    const auto estimator = estimator_of(one.estimator, model);
    const auto truth = exact_reference(estimator->target(), model, batch, 1e6);
    Moments first;
    for (const int threads : {1, 2, 3, 4}) {
      CAPTURE(threads);
      Moments m;
      with_threads(threads, [&] { m = exact_moments(*estimator, model, batch, truth.of_example, 1e6, true); });
      if (threads == 1) first = m;
      CHECK(m.outcomes >= one.visits);
      CHECK(m.outcomes == first.outcomes);
      CHECK(m.mean == first.mean);
      CHECK(m.variances == first.variances);
      CHECK(m.covariance == first.covariance);
      CHECK(m.loss == first.loss);
      CHECK(m.cost.rows == first.cost.rows);
      CHECK(m.cost.attention_values == first.cost.attention_values);
      CHECK(m.mean_error == first.mean_error);
      CHECK(m.trace_error == first.trace_error);
      CHECK(m.nodes == first.nodes);
      CHECK((m.cosine == first.cosine || batch.examples() > 1));
    }
  };
  const auto batch = Recurrent<double>::batch();
  compare(recurrent, batch.select({1}), {"rloo[samples=3]", 165});
  compare(recurrent, batch, {"reinforce[samples=3]", 165});
  compare(*bits, one_example(), {"reinforce", 256});
  compare(*two, one_example(), {"arm", 144});            // pieces of a uniform number
  compare(*normal, one_example(), {"reinforce", 1024});  // Gauss rules
}

/// Draws seven further bits after a first one that is 0, and nine after a 1.
struct Uneven final : Estimator<double> {
  std::unique_ptr<Estimator<double>> inner;
  Estimate<double> estimate(const Problem<double>& p) const override {
    const auto draw = [&](std::uint32_t i) { return p.random.categorical(std::vector{0.5, 0.5}, {.step = 100 + i}); };
    const auto more = draw(0) == 0 ? 7u : 9u;
    for (std::uint32_t i = 1; i <= more; ++i) draw(i);
    return inner->draw(p);
  }
  bool exchangeable() const override { return false; }
};

TEST_CASE("visits in parts are counted together, and stopped together") {
  const auto model = model_of("bits[bits=1,t=0.3,logit=0.4]");
  Uneven uneven;
  uneven.inner = estimator_of("reinforce", *model);
  const auto truth = exact_reference({}, *model, one_example(), 1e6);
  for (const int threads : {1, 2, 3, 4}) {
    CAPTURE(threads);
    with_threads(threads, [&] {
      const auto moments = [&](double cap, const Stop& stop = {}) {
        return exact_moments(uneven, *model, one_example(), truth.of_example, cap, false, stop);
      };
      const auto all = moments(2 * 128 + 2 * 512);
      CHECK(all.outcomes == 2 * 128 + 2 * 512);
      CHECK(distance_between(all.mean, truth.gradient) < 1e-14);
      CHECK_THROWS_WITH_AS(moments(2 * 128 + 2 * 512 - 1),
                           doctest::Contains("need about 1280 outcomes for one example, more than its share 1279"), UsageError);
      // By the first visit, 512 outcomes are expected.
      CHECK_THROWS_WITH_AS(moments(511), doctest::Contains("need about 512 outcomes"), UsageError);
      CHECK_THROWS_WITH_AS(moments(700), doctest::Contains("need about 701 outcomes"), UsageError);
      std::atomic<int> polls = 0;
      CHECK_THROWS_AS(moments(1e6, [&] { return ++polls > 400; }), Interrupted);
      CHECK(polls < 440);
    });
  }
}

}  // namespace
}  // namespace hardgrad::testing::visits_test
