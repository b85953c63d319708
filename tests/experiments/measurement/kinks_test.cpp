// Kinks and jumps of a function, and of an estimate along its draws.
#include "experiments/measurement/kinks.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace hardgrad::testing::kinks_test {
using namespace measurement;
namespace {

template <class F>
std::vector<double> found(F f) {
  double value;
  return kinks_of([&](double share) -> std::span<const double> {
    value = f(share);
    return {&value, 1};
  });
}

TEST_CASE("jumps, kinks and singularities are located") {
  int places = 0;
  for (double at : {0.01, 0.2499, 0.3, 0.5, 0.625, 0.93}) {
    CAPTURE(at);
    const auto check = [&](const std::vector<double>& kinks, double precision) {
      REQUIRE(kinks.size() == 1);
      CHECK(std::abs(kinks[0] - at) < precision);
      ++places;
    };
    check(found([&](double x) { return x > at ? 1.0 : std::sin(x); }), 1e-13);
    check(found([&](double x) { return std::abs(x - at); }), 1e-10);
    check(found([&](double x) { return std::exp(x) * std::pow(std::abs(x - at), 1.5); }), 1e-6);
    check(found([&](double x) { return x + std::pow(std::abs(x - at), -0.4); }), 1e-12);
  }
  CHECK(places == 24);
  const auto two = found([](double x) { return std::abs(x - 0.3) + (x > 0.62); });
  REQUIRE(two.size() == 2);
  CHECK(std::abs(two[0] - 0.3) < 1e-10);
  CHECK(std::abs(two[1] - 0.62) < 1e-13);
}

TEST_CASE("no kinks are reported for smooth functions, for singular ends, or for functions that are rough everywhere") {
  CHECK(found([](double x) { return std::exp(3 * x); }).empty());
  CHECK(found([](double) { return 0.0; }).empty());
  CHECK(found([](double x) { return std::log(x) - std::log1p(-x); }).empty());
  CHECK(found([](double x) { return std::sqrt(x); }).empty());
  CHECK(found([](double x) { return 1 / (1 + std::exp((x - 0.3) / 0.01)); }).empty());
  CHECK(found([](double x) { return 1 + 1e-16 * std::sin(1e7 * x); }).empty());
  CHECK(found([](double x) { return std::fmod(1e5 * x, 1.0); }).empty());
}

TEST_CASE("a kink in one of many entries is found") {
  std::vector<double> values(5);
  const auto kinks = kinks_of([&](double share) -> std::span<const double> {
    values = {1, share, share * share, 1e-3 * std::abs(share - 0.7), 5};
    return values;
  });
  REQUIRE(kinks.size() == 1);
  CHECK(std::abs(kinks[0] - 0.7) < 1e-8);
}

TEST_CASE("kinks of a draw are found for every outcome of the others") {
  double value;
  const Draw coin{.step = 1}, number{.step = 2}, smooth{.step = 3};
  const auto kinks = find_kinks(
      [&](Randomness& random) -> std::span<const double> {
        const double half[] = {0.5, 0.5};
        const int side = random.categorical(half, coin);
        value = std::abs(random.logistic(number, 0.5) - (side == 1 ? 2.0 : -1.0)) + random.uniform(smooth);
        return {&value, 1};
      },
      1e6);
  const auto at = kinks.of(number);
  REQUIRE(at.size() == 2);
  CHECK(std::min(at[0], at[1]) == doctest::Approx(-1).epsilon(1e-9));
  CHECK(std::max(at[0], at[1]) == doctest::Approx(2).epsilon(1e-9));
  CHECK((kinks.of(coin).empty() && kinks.of(smooth).empty()));
}

}  // namespace
}  // namespace hardgrad::testing::kinks_test
