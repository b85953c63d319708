// The Normal distribution: density, entropy and divergence by their formulas; derivatives; quadrature.
#include "core/choice/normal.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"

namespace hardgrad::testing::normal_test {
namespace {

const std::vector<double> means = {0.3, -1.2, 0.8, 0.1}, log_scales = {-0.4, 0.2, 0.5, -1.1};  // [2, 2]

struct Two {
  Tape<double> tape;
  Var<double> mean = tape.input(MatrixView<const double>{means.data(), 2, 2});
  Var<double> log_scale = tape.input(MatrixView<const double>{log_scales.data(), 2, 2});
  std::shared_ptr<const Normal<double>> distribution = normal(mean, log_scale);
  RowsPtr root = Rows::root(2);
  std::vector<std::uint32_t> id = {7, 9};
  KeyedRandomness random{Key(3)};
  Choice<double> draw(int copies, bool differentiable = false) {
    std::vector<int> parent(2 * copies);
    for (std::size_t r = 0; r < parent.size(); ++r) parent[r] = static_cast<int>(r) / copies;
    const auto rows = Rows::after(root, parent, 0);
    const Noise noise{random, id, 0};
    return differentiable ? distribution->reparameterised_sample(tape, rows, noise) : distribution->sample(tape, rows, noise);
  }
};

TEST_CASE("log density, entropy and divergence of a Normal equal their formulas") {
  Two two;
  const auto choice = two.draw(2);
  const auto log_p = row_sums(two.distribution->log_probability(choice)), entropy = two.distribution->entropy();
  CHECK(choice.hard());
  CHECK(choice.has_probability());
  for (int r = 0; r < 4; ++r) {
    double expected = 0;
    for (int d = 0; d < 2; ++d) {
      const int i = r / 2 * 2 + d;
      const double s = std::exp(log_scales[i]), e = (choice.value().value()(r, d) - means[i]) / s;
      expected += -e * e / 2 - std::log(s * std::sqrt(2 * std::numbers::pi));
    }
    CHECK(log_p.value().data[r] == doctest::Approx(expected).epsilon(1e-13));
  }
  for (int r = 0; r < 2; ++r)
    CHECK(entropy.value().data[r] ==
          doctest::Approx(log_scales[2 * r] + log_scales[2 * r + 1] + std::log(2 * std::numbers::pi * std::numbers::e))
              .epsilon(1e-13));
  CHECK(two.distribution->divergence(*two.distribution).value().data[0] == doctest::Approx(0).epsilon(1e-15));
  const auto other = normal(two.log_scale, two.mean);
  const auto kl = two.distribution->divergence(*other);
  for (int r = 0; r < 2; ++r) {
    double expected = 0;
    for (int i : {2 * r, 2 * r + 1}) {
      const double s = std::exp(log_scales[i]), t = std::exp(means[i]), d = means[i] - log_scales[i];
      expected += std::log(t / s) + (s * s + d * d) / (2 * t * t) - 0.5;
    }
    CHECK(kl.value().data[r] == doctest::Approx(expected).epsilon(1e-13));
  }
}

TEST_CASE("derivatives of the log density are the scores, those of a reparameterised draw are one and the noise") {
  Two two;
  const auto choice = two.draw(1);
  two.tape.backward(sum(two.distribution->log_probability(choice)));
  for (int i = 0; i < 4; ++i) {
    const double s = std::exp(log_scales[i]), e = (choice.value().value().data[i] - means[i]) / s;
    CHECK(two.tape.gradient(two.mean).data[i] == doctest::Approx(e / s).epsilon(1e-12));
    CHECK(two.tape.gradient(two.log_scale).data[i] == doctest::Approx(e * e - 1).epsilon(1e-12));
  }
  Two again;
  const auto drawn = again.draw(1, true);
  again.tape.backward(sum(drawn.value()));
  for (int i = 0; i < 4; ++i) {
    CHECK(drawn.value().value().data[i] == doctest::Approx(choice.value().value().data[i]).epsilon(1e-15));  // the same noise
    CHECK(again.tape.gradient(again.mean).data[i] == 1);
    CHECK(again.tape.gradient(again.log_scale).data[i] == doctest::Approx(drawn.value().value().data[i] - means[i]));
  }
}

TEST_CASE("a quadrature's nodes have total mass one, and its gradient is the mean's") {
  Two two;
  const int n = 8;
  const auto choice = two.distribution->enumerate(two.tape, two.root, 0, {.nodes = n});
  REQUIRE(choice.rows->size() == 2 * n * n);
  const auto log_mass = add(row_sums(two.distribution->log_probability(choice)), choice.numbers()->log_volume);
  // E[sum_d z_d^2 + z_1 z_2] by nodes; the gradient runs only through the log density.
  double mass = 0, mean = 0;
  auto f = two.tape.constant(choice.rows->size(), 1);
  for (std::size_t r = 0; r < choice.rows->size(); ++r) {
    const auto z = choice.value().value().row(r);
    two.tape.mutable_value(f).data[r] = z[0] * z[0] + z[1] * z[1] + z[0] * z[1];
    if (choice.rows->example[r] == 0) mass += std::exp(log_mass.value().data[r]);
  }
  const auto total = sum(multiply(exp(log_mass), f));
  mean = total.item();
  double expected = 0;
  for (int r = 0; r < 2; ++r) {
    expected += means[2 * r] * means[2 * r + 1];
    for (int i : {2 * r, 2 * r + 1}) expected += means[i] * means[i] + std::exp(2 * log_scales[i]);
  }
  CHECK(mass == doctest::Approx(1).epsilon(1e-13));
  CHECK(mean == doctest::Approx(expected).epsilon(1e-12));
  two.tape.backward(total);
  for (int i = 0; i < 4; ++i) {
    CHECK(two.tape.gradient(two.mean).data[i] == doctest::Approx(2 * means[i] + means[i ^ 1]).epsilon(1e-11));
    CHECK(two.tape.gradient(two.log_scale).data[i] == doctest::Approx(2 * std::exp(2 * log_scales[i])).epsilon(1e-11));
  }
}

TEST_CASE("a quadrature with more rows than allowed is rejected with a message, and parallel columns are not multiplied") {
  Two two;
  CHECK_THROWS_WITH_AS(two.distribution->enumerate(two.tape, two.root, 0, {.cap = 100, .nodes = 8}),
                       doctest::Contains("choice 1 has more than 100 rows to integrate over"), NotExact);
  const auto choice = two.distribution->enumerate(two.tape, two.root, 0, {.side_by_side = true, .cap = 100, .nodes = 8});
  REQUIRE(choice.rows->size() == 16);
  CHECK(choice.side_by_side);
  const auto mass = exp(add(two.distribution->log_probability(choice), choice.numbers()->log_volume)).value();
  for (int d : {0, 1}) {
    double sum = 0;
    for (std::size_t r = 0; r < 8; ++r) sum += mass(r, d);
    CHECK(sum == doctest::Approx(1).epsilon(1e-13));
  }
}

TEST_CASE("the mean has no probability, and asking numbers for options is a bug") {
  Two two;
  const auto mean = two.distribution->mean(Rows::after(two.root, {0, 1}, 0));
  CHECK(!mean.has_probability());
  CHECK(mean.value().value().data[3] == means[3]);
  CHECK_THROWS_AS(mean.one_hot(two.tape, 2), Bug);
  CHECK_THROWS_AS(mean.option(), Bug);
  CHECK_THROWS_AS(mean.weights(), Bug);
  Question<double> question;
  question.distribution = two.distribution;
  CHECK_THROWS_WITH_AS(question.categories(), doctest::Contains("choices are numbers"), Bug);
}

}  // namespace
}  // namespace hardgrad::testing::normal_test
