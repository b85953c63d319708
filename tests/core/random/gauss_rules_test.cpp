// Gauss rules: exact for polynomials, accurate to double for cosines, and for the same distributions as the draws.
#include "core/random/gauss_rules.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "core/random/randomness.hpp"

namespace hardgrad::testing::gauss_rules_test {
namespace {

const Standard all[] = {Standard::normal, Standard::weibull, Standard::double_maxwell, Standard::uniform};

template <class F>
double mean(const GaussRule& rule, F f) {
  double sum = 0;
  for (std::size_t i = 0; i < rule.points.size(); ++i) sum += rule.weights[i] * f(rule.points[i]);
  return sum;
}

/// E[z^k]: (k - 1)!!; 2^(k/2) Gamma(1 + k/2); (k + 1)!!; 1/(k + 1). Odd moments of the two symmetric ones are 0.
double moment(Standard noise, int k) {
  if (noise == Standard::weibull) return std::pow(2, k / 2.0) * std::tgamma(1 + k / 2.0);
  if (noise == Standard::uniform) return 1.0 / (k + 1);
  if (k % 2) return 0;
  double product = 1;
  for (int i = noise == Standard::normal ? k - 1 : k + 1; i > 1; i -= 2) product *= i;
  return product;
}

TEST_CASE("a rule of n points has all moments up to 2n - 1, but not the next one") {
  for (auto noise : all)
    for (int n : {1, 2, 3, 5, 8}) {
      CAPTURE(static_cast<int>(noise));
      CAPTURE(n);
      const auto& rule = gauss_rule(noise, n);
      for (int k = 0; k < 2 * n; ++k) {
        CAPTURE(k);
        CHECK(std::abs(mean(rule, [&](double z) { return std::pow(z, k); }) - moment(noise, k)) <
              1e-11 * std::max(1.0, moment(noise, k + k % 2)));
      }
      if (n > 5) continue;  // for uniform numbers the difference is too small
      const double next = moment(noise, 2 * n);
      CHECK(std::abs(mean(rule, [&](double z) { return std::pow(z, 2 * n); }) - next) > 1e-7 * next);
    }
}

TEST_CASE("means of cosines to 1e-12 with 32 points") {
  for (double a : {0.3, 1.0, 2.5}) {
    CAPTURE(a);
    const auto cosine = [a](double z) { return std::cos(a * z); };
    CHECK(std::abs(mean(gauss_rule(Standard::normal, 32), cosine) - std::exp(-a * a / 2)) < 1e-13);
    CHECK(std::abs(mean(gauss_rule(Standard::double_maxwell, 32), cosine) - (1 - a * a) * std::exp(-a * a / 2)) < 1e-12);
    CHECK(std::abs(mean(gauss_rule(Standard::uniform, 32), cosine) - std::sin(a) / a) < 1e-13);
    // for Weibull the sine: sqrt(pi / 2) a exp(-a^2 / 2)
    const double sine = mean(gauss_rule(Standard::weibull, 32), [a](double z) { return std::sin(a * z); });
    CHECK(std::abs(sine - std::sqrt(std::numbers::pi / 2) * a * std::exp(-a * a / 2)) < 1e-12);
  }
}

TEST_CASE("keyed draws have the moments of their distribution, within five standard errors") {
  KeyedRandomness random(Key(4));
  const int draws = 40000;
  for (auto noise : all)
    for (int k : {1, 2, 3, 4}) {
      double sum = 0;
      for (int i = 0; i < draws; ++i)
        sum += std::pow(random.standard(noise, {.example = static_cast<std::uint32_t>(i), .step = 3}), k);
      const double variance = moment(noise, 2 * k) - std::pow(moment(noise, k), 2);
      CHECK(std::abs(sum / draws - moment(noise, k)) < 5 * std::sqrt(variance / draws));
    }
  const Draw where{.example = 1, .replica = 2, .step = 3, .index = 4, .column = 5};
  CHECK(random.normal(where) == random.standard(Standard::normal, where));
}

}  // namespace
}  // namespace hardgrad::testing::gauss_rules_test
