// Returns, leave-one-out, and learned state.
#include <doctest/doctest.h>

#include <numeric>

#include "core/autodiff/tape.hpp"
#include "core/estimator/score_function/moving_average.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/nn/optimizer.hpp"
#include "experiments/verification/recurrent.hpp"
#include "experiments/verification/test_models.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::score_function_test {
using namespace measurement;
namespace {

using verification::Recurrent;

TEST_CASE("returns: whole losses are equal at all steps, rewards to go exclude earlier costs") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  Tape<double> tape;
  KeyedRandomness random(Key(1));
  Sampled<double> sampled({tape, model, batch, random}, 2);
  const auto losses = sampled.losses();
  REQUIRE(losses.size() == 6);
  CHECK(sampled.returns(0, Credit::whole) == losses);
  CHECK(sampled.returns(2, Credit::whole) == losses);
  const auto& costs = sampled.episode().costs();  // root, three steps, the end
  for (int t = 0; t < 3; ++t) {
    const auto to_go = sampled.returns(t, Credit::reward_to_go);
    for (std::size_t r = 0; r < 6; ++r) {
      double expected = 0;
      for (std::size_t c = 1 + t; c < costs.size(); ++c) expected += costs[c].loss.value().data[r];
      CHECK(to_go[r] == doctest::Approx(expected).epsilon(1e-14));
    }
  }
}

TEST_CASE("independent choices are credited only with their own cost") {
  Recurrent<double> model(false);
  const auto batch = Recurrent<double>::batch();
  Tape<double> tape;
  KeyedRandomness random(Key(1));
  Sampled<double> sampled({tape, model, batch, random}, 2);
  const auto to_go = sampled.returns(1, Credit::reward_to_go);
  for (std::size_t r = 0; r < 6; ++r) CHECK(to_go[r] == sampled.episode().costs()[2].loss.value().data[r]);
}

TEST_CASE("leave-one-out, computed explicitly") {
  std::vector<double> f = {1, 2, 6, 5, 5, 5};
  leave_one_out(f, 3);
  CHECK(f == std::vector<double>{-3, -1.5, 4.5, 0, 0, 0});
}

TEST_CASE("moving averages start at the first observation and ignore NaN") {
  MovingAverage average(2, 0.9);
  CHECK(average[0] == 0);
  average.observe({4, std::nan("")});
  average.observe({6, 1});
  CHECK(average[0] == doctest::Approx(4.2));
  CHECK(average[1] == 1);
  MovingAverage copy(2, 0.9);
  copy.restore(average.state());
  copy.observe({0, 0});
  average.observe({0, 0});
  CHECK(copy.state() == average.state());
}

TEST_CASE("an average of a place that there is none of is refused") {
  struct Averaging final : AveragingEstimator<double> {
    explicit Averaging(const Structure& structure) : AveragingEstimator(structure, 0.9, 1) {}
    Estimate<double> estimate(const Problem<double>&) const override { return {}; }
  };
  const Averaging averaging({.sites = {{.name = "choice", .options = 3, .times = 2, .columns = 3}}});
  std::vector<double> observed;
  averaging.note(observed, 1, {1, 2, 3});
  averaging.note(observed, 0, {4});
  REQUIRE(observed.size() == 6);
  CHECK(std::isnan(observed[1]));
  CHECK(std::vector<double>{observed[0], observed[3], observed[4], observed[5]} == std::vector<double>{4, 1, 2, 3});
  for (const int step : {-1, 2}) {
    CHECK_THROWS_AS(averaging.note(observed, step, {1}), Bug);
    CHECK_THROWS_AS(averaging.average(step, 0), Bug);
  }
  CHECK_THROWS_WITH_AS(averaging.note(observed, 1, {1, 2, 3, 4}),
                       doctest::Contains("column 4 of step 1, but there are 3 columns"), Bug);
  CHECK_THROWS_AS(averaging.average(1, 3), Bug);
  CHECK(observed.size() == 6);
}

TEST_CASE("a divergence that is known before any choice is not part of the learning signal") {
  const auto tested = verification::alone(3, true);
  const auto& model = *tested.model;
  Tape<double> tape;
  std::vector<double> of_divergence(model.parameters().size());
  int differ = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto drawn = [&](const char* spec) {
      return gradient_of(*estimator_of(spec, model), model, tested.batch, Key(seed));
    };
    const auto plain = drawn("reinforce[target=elbo]"), shifted = drawn("reinforce[target=elbo,baseline=1]");
    tape.clear();
    KeyedRandomness random{Key(seed)};
    const auto estimate = estimator_of("reinforce[target=elbo]", model)->draw({tape, model, tested.batch, random});
    const auto& divergence = estimate.episode->costs().front();
    REQUIRE(divergence.divergence);
    const double f = estimate.loss - divergence.loss.item();  // the model's loss
    differentiate(divergence.loss, model.parameters(), of_divergence);
    for (std::size_t i = 0; i < plain.size(); ++i)  // (f - b) grad log q + grad KL
      if (of_divergence[i] != 0) {
        CHECK(plain[i] == doctest::Approx(f * (plain[i] - shifted[i]) + of_divergence[i]).epsilon(1e-9));
        ++differ;
      }
  }
  CHECK(differ >= 20);
}

TEST_CASE("the baseline is used before it is updated") {
  auto model = model_of("bits[t=0.3]");
  const auto batch = one_example();
  auto estimator = estimator_of("moving_baseline", *model);
  Tape<double> tape;
  const auto gradient = [&](Estimator<double>& e, std::uint64_t seed, bool learn) {
    tape.clear();
    KeyedRandomness random{Key(seed)};
    const auto estimate = e.draw({tape, *model, batch, random});
    tape.backward(estimate.surrogate);
    std::vector<double> g(1);
    tape.add_gradient(model->parameters(), std::span<double>(g));
    if (learn) e.learn(estimate);
    return g[0];
  };
  auto plain = estimator_of("reinforce", *model);
  CHECK(gradient(*estimator, 1, false) == gradient(*plain, 1, false));  // nothing learned yet
  gradient(*estimator, 1, true);
  CHECK(estimator->state()[0] > 0);
  auto shifted = estimator_of("reinforce[baseline=" + std::to_string(estimator->state()[0]) + "]", *model);
  CHECK(gradient(*estimator, 2, false) == doctest::Approx(gradient(*shifted, 2, false)).epsilon(1e-5));
}

TEST_CASE("nvil's baseline learns to lower the variance") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  auto estimator = estimator_of("nvil[hidden=8,reward_to_go=true]", model);
  const double before = variance_of(*estimator, model, batch);
  auto optimizer =
      make_optimizer<double>({.rule = UpdateRule::adam, .learning_rate = 0.02}, estimator->own_parameters().size());
  Tape<double> tape;
  std::vector<double> gradient(estimator->own_parameters().size());
  for (std::uint64_t step = 0; step < 300; ++step) {
    tape.clear();
    KeyedRandomness random(Key(2) / step);
    const auto estimate = estimator->draw({tape, model, batch, random});
    std::fill(gradient.begin(), gradient.end(), 0.0);
    tape.backward(estimate.own_loss);
    tape.add_gradient(estimator->own_parameters(), std::span<double>(gradient));
    optimizer->step(estimator->own_parameters(), gradient);
    estimator->learn(estimate);
  }
  CHECK(variance_of(*estimator, model, batch) < 0.6 * before);
  CHECK(bias_of(*estimator, model, batch) < 1e-10);
}

TEST_CASE("nvil: its baseline's objective, and its state: a mean for every column, then the mean square") {
  const auto model = model_of("bits[bits=3,t=0.3;0.6;0.1,logit=0.2;-0.1;0.4]");
  const auto batch = one_example();
  auto estimator = estimator_of("nvil[samples=2,reward_to_go=true]", *model);
  for (auto& parameter : estimator->own_parameters())
    for (auto& value : parameter.value) value = 0;  // so that it predicts 0
  Tape<double> tape;
  KeyedRandomness random(Key(1));
  Sampled<double> sampled({tape, *model, batch, random}, 2);
  const auto f = sampled.returns(0, Credit::reward_to_go);
  REQUIRE(f.size() == 6);  // [samples, columns]
  const double square = std::inner_product(f.begin(), f.end(), f.begin(), 0.0) / 6;
  const auto estimate = estimator->draw({tape, *model, batch, random});
  CHECK(estimate.own_loss.item() == doctest::Approx(square).epsilon(1e-14));
  estimator->learn(estimate);
  const auto state = estimator->state();
  REQUIRE(state.size() >= 4);
  for (std::size_t d = 0; d < 3; ++d) CHECK(state[d] == doctest::Approx((f[d] + f[3 + d]) / 2).epsilon(1e-14));
  CHECK(state[3] == doctest::Approx(square).epsilon(1e-14));
}

TEST_CASE("the same place draws the same number, for any rest of the batch") {
  Recurrent<double> model(true);
  const auto all = Recurrent<double>::batch();
  Tape<double> tape, other;
  KeyedRandomness random(Key(8));
  Sampled<double> together({tape, model, all, random}, 3);
  const auto one = all.select({1});
  Sampled<double> alone({other, model, one, random}, 3);
  for (int t = 0; t < 3; ++t)
    for (int k = 0; k < 3; ++k)
      CHECK(together.episode().steps()[t].choice.option()[3 + k] == alone.episode().steps()[t].choice.option()[k]);
}

}  // namespace
}  // namespace hardgrad::testing::score_function_test
