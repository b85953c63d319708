// bits: given coefficients of a linear cost, and initial probabilities from a Dirichlet distribution.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "core/estimator/enumeration/objectives.hpp"
#include "core/models/model.hpp"
#include "core/support/error.hpp"

namespace hardgrad::testing::bits_test {
namespace {

std::unique_ptr<Model<double>> bits(const std::string& settings, int seed = 1) {
  return make_model<double>(Spec::parse("bits[" + settings + "]"), {{"bits", 1}}, Key(seed), false);
}
double expected_cost(const Model<double>& model) {
  Batch batch;
  batch.id = {0};
  Tape<double> tape;
  KeyedRandomness unused{Key{}};
  return exact_objective<double>(Target(), {tape, model, batch, unused}, 100).loss;
}

TEST_CASE("a linear cost with given coefficients") {
  const auto model = bits("bits=2,options=3,function=linear,coefficients=1;2;3;-4;5;6,logit=0;0;0;0.3;0.1;-0.2");
  double sum = 0, expected = 2;
  for (const double l : {0.3, 0.1, -0.2}) sum += std::exp(l);
  const double c[] = {-4, 5, 6}, logit[] = {0.3, 0.1, -0.2};
  for (int i = 0; i < 3; ++i) expected += c[i] * std::exp(logit[i]) / sum;
  CHECK(expected_cost(*model) == doctest::Approx(expected).epsilon(1e-14));
  const auto bit = bits("function=linear,coefficients=1;3,logit=0.4");
  CHECK(expected_cost(*bit) == doctest::Approx(1 + 2 / (1 + std::exp(-0.4))).epsilon(1e-14));
  CHECK_THROWS_WITH_AS(bits("bits=2,options=3,function=linear,coefficients=1;2"),
                       "bits: coefficients must be 0 or 6 numbers, got 2", UsageError);
}

/// A model's initial logits, [choices, S]; of bits (0, phi).
std::vector<std::vector<double>> logits(const Model<double>& model, std::size_t options) {
  std::vector<std::vector<double>> all;
  const auto& value = (*model.parameters().begin()).value.storage();
  for (std::size_t i = 0; i < value.size(); i += options == 2 ? 1 : options)
    all.push_back(options == 2 ? std::vector<double>{0, value[i]}
                               : std::vector<double>(value.begin() + static_cast<std::ptrdiff_t>(i),
                                                     value.begin() + static_cast<std::ptrdiff_t>(i + options)));
  return all;
}

TEST_CASE("probabilities drawn from a Dirichlet distribution have its mean and variance, within five standard errors") {
  const int draws = 20000;
  int visited = 0;
  for (const double alpha : {0.5, 1.0, 10.0, 1000.0})
    for (const int options : {2, 3}) {
      CAPTURE(alpha);
      CAPTURE(options);
      const double S = options, total = S * alpha, variance = (S - 1) / (S * S * (total + 1));
      double sum = 0, squares = 0, fourth = 0;
      for (const auto& l : logits(*bits(fmt::format("bits={},options={},dirichlet={}", draws, options, alpha)), options)) {
        double all = 0;
        for (double x : l) all += std::exp(x - l[1]);
        const double off = 1 / all - 1 / S;
        sum += off;
        squares += off * off;
        fourth += std::pow(off * off - variance, 2);
      }
      CHECK(std::abs(sum / draws) < 5 * std::sqrt(variance / draws));
      CHECK(std::abs(squares / draws - variance) < 5 * std::sqrt(fourth / draws / draws));
      ++visited;
    }
  CHECK(visited == 8);
}

TEST_CASE("Dirichlet probabilities: another seed draws different ones, and hardly any small one underflows") {
  const auto a = logits(*bits("bits=3,options=3,dirichlet=1", 1), 3), b = logits(*bits("bits=3,options=3,dirichlet=1", 2), 3);
  CHECK(a == logits(*bits("bits=3,options=3,dirichlet=1", 1), 3));
  CHECK(a != b);
  for (const auto& l : logits(*bits("bits=2000,options=3,dirichlet=0.001"), 3))
    for (double x : l) CHECK(std::isfinite(x));
}

}  // namespace
}  // namespace hardgrad::testing::bits_test
