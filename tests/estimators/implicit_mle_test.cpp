// Implicit MLE: the distribution of the choices with the same noise before and after the logits move, and the estimator.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/choice/gumbel.hpp"
#include "core/random/randomness.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/logistic.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::implicit_mle_test {
using namespace measurement;
namespace {

using verification::Recurrent;

const std::vector<double> logits = {0.2, -1.5, 0.9, 0.0, 1.1}, move = {0.7, -2.0, 0.1, 3.0, 0.1};

TEST_CASE("implicit_mle: averaged over the first choice, the moved choice has the moved distribution") {
  for (double size : {1e-6, 0.3, 1.0, 20.0, 1e4}) {
    const auto p = softmax(logits);
    auto moved = logits, by = move;
    for (std::size_t i = 0; i < 5; ++i) moved[i] = logits[i] + (by[i] = size * move[i]) - size * 3;  // none overflows
    const auto expected = softmax(moved);
    std::vector<double> law(5);
    for (int z = 0; z < 5; ++z) {
      const auto given = chosen_after(p, z, by);
      double sum = 0;
      for (std::size_t i = 0; i < 5; ++i) {
        sum += given[i];
        law[i] += p[z] * given[i];
        if (by[i] <= by[z] && static_cast<int>(i) != z) CHECK(given[i] == 0);  // only options that gained on z overtake it
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-13));
    }
    for (std::size_t i = 0; i < 5; ++i) CHECK(std::abs(law[i] - expected[i]) < 1e-14);
  }
}

TEST_CASE(
    "implicit_mle: the moved choice given the first one has the frequency under Gumbel noise, within five standard errors") {
  constexpr int draws = 200000;
  const auto p = softmax(logits);
  std::vector<int> count(5), pair(25);
  KeyedRandomness random(Key(3));
  for (std::uint32_t n = 0; n < draws; ++n) {
    std::vector<double> before(5), after(5);
    for (std::uint32_t i = 0; i < 5; ++i) {
      const double gumbel = -std::log(-std::log(random.uniform({.example = n, .index = i})));
      before[i] = logits[i] + gumbel;
      after[i] = before[i] + move[i];
    }
    const auto first = [](const std::vector<double>& x) { return std::max_element(x.begin(), x.end()) - x.begin(); };
    ++count[first(before)];
    ++pair[first(before) * 5 + first(after)];
  }
  for (int z = 0; z < 5; ++z) {
    const auto law = chosen_after(p, z, move);
    for (int i = 0; i < 5; ++i)
      CHECK(std::abs(pair[z * 5 + i] - count[z] * law[i]) <= 5 * std::sqrt(count[z] * law[i] * (1 - law[i])) + 1e-9);
  }
}

TEST_CASE("implicit_mle: mean and variance on one bit, from the share of the noise that changes its side") {
  for (double phi : {-1.2, 0.0, 0.7})
    for (double lambda : {0.1, 1.0, 30.0}) {
      const double t = 0.3;
      const auto model = model_of(fmt::format("bits[t={},logit={}]", t, phi));
      // slopes 2 (b - t): at 1 the logit falls by lambda 2 (1 - t), at 0 it grows by lambda 2 t
      const double falls = (sigmoid(phi) - sigmoid(phi - lambda * 2 * (1 - t))),
                   grows = sigmoid(phi + lambda * 2 * t) - sigmoid(phi);
      const double mean = (falls - grows) / lambda, square = (falls + grows) / lambda / lambda;
      const auto moments = exact_moments(*estimator_of(fmt::format("implicit_mle[lambda={}]", lambda), *model), *model,
                                         one_example(), {std::vector<double>(1)}, 1e6);
      CHECK(moments.mean[0] == doctest::Approx(mean).epsilon(1e-12));
      CHECK(moments.trace == doctest::Approx(square - mean * mean).epsilon(1e-10));
    }
}

TEST_CASE(
    "implicit_mle: as lambda falls, twice the gradient for a square loss of one bit, the gradient itself for a linear one") {
  const auto bit = model_of("bits[t=0.3,logit=0.4]");
  const double v = sigmoid(0.4) * sigmoid(-0.4);
  CHECK(mean_of("implicit_mle[lambda=1e-6]", *bit)[0] == doctest::Approx(2 * v * (1 - 2 * 0.3)).epsilon(1e-5));
  const auto linear = model_of(linear_bits);
  double last = 1;
  for (double lambda : {1.0, 0.1, 0.01, 0.001}) {
    const double bias = bias_of(fmt::format("implicit_mle[lambda={}]", lambda), *linear);
    CHECK(bias < last);
    last = bias / 5;  // in proportion to lambda
  }
  CHECK(last < 1e-4);
}

TEST_CASE("implicit_mle: for linear losses it is the difference of the two distributions, over lambda, column by column") {
  const auto model = model_of(linear_bits);
  const double lambda = 2;
  const auto mean = mean_of("implicit_mle[lambda=2,samples=2]", *model);
  const std::vector<double> phi = {0.2, -0.1, 0.4};
  for (std::size_t d = 0; d < 2; ++d) {
    // The column's costs, read from the model with nearly certain choices.
    std::vector<double> stepped = phi, cost(3);
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<double> sure = {0, 0, 0, 0, 0, 0};
      sure[d * 3 + i] = 300;
      sure[(1 - d) * 3] = 300;
      cost[i] =
          exact_reference({}, *model_of(fmt::format("bits[bits=2,options=3,function=linear,logit={}]", fmt::join(sure, ";"))),
                          one_example(), 1e6)
              .value;
      stepped[i] -= lambda * cost[i];
    }
    const auto p = softmax(phi), after = softmax(stepped);
    for (std::size_t i = 0; i < 3; ++i) CHECK(mean[d * 3 + i] == doctest::Approx((p[i] - after[i]) / lambda).epsilon(1e-11));
  }
}

TEST_CASE("implicit_mle: it runs if choices feed later ones, and draws with separate noise are distinguished") {
  for (bool feeding : {false, true}) {
    const Recurrent<double> model(feeding);
    const auto g = gradient_of(*estimator_of("implicit_mle[samples=3]", model), model, Recurrent<double>::batch(), Key(3));
    CHECK(largest(g) > 0);
    CHECK(std::all_of(g.begin(), g.end(), [](double x) { return std::isfinite(x); }));
  }
  // With separate noise z' would be 0 with 1 - q after a 1, and 1 with r after a 0.
  const double phi = 0.7, p = sigmoid(phi), q = sigmoid(phi - 2 * 0.7), r = sigmoid(phi + 2 * 0.3);
  const auto model = model_of("bits[t=0.3,logit=0.7]");
  const double mean = mean_of("implicit_mle", *model)[0];
  CHECK(mean == doctest::Approx(2 * p - q - r).epsilon(1e-12));
  CHECK(std::abs(mean - (p * (1 - q) - (1 - p) * r)) > 0.02);
}

}  // namespace
}  // namespace hardgrad::testing::implicit_mle_test
