// reinmax_cv on one bit, against integrals over the noise: the mean of its control variate, and its contribution to the
// variance.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "tests/support/exactness.hpp"
#include "tests/support/logistic.hpp"

namespace hardgrad::testing::reinmax_cv_test {
using namespace measurement;
namespace {

TEST_CASE(
    "reinmax_cv: a control with noise given the choice has mean zero and only adds variance, the published one has a nonzero "
    "mean") {
  int visited = 0;
  for (const auto& [phi, eta, halfway] : {std::tuple{-0.4, 0.5, true}, {1.2, 1.5, false}}) {
    const double t = 0.3, p1 = 1 / (1 + std::exp(-phi));
    const auto slope = [&](bool one) { return 2 * (one - t); };
    const auto model = model_of(fmt::format("bits[t={},logit={}]", t, phi));
    const auto moments = [&](const std::string& spec) {
      return exact_moments(*estimator_of(spec, *model), *model, one_example(), {{p1 * (1 - p1) * (1 - 2 * t)}}, 1e6);
    };
    double difference = 0, square = 0;  // mean and mean square of slope x (one draw - another) of the halfway noise
    for (bool one : {false, true}) {
      const double p = one ? p1 : 1 - p1, theta = std::log(one ? (1 + p1) / (1 - p1) : p1 / (2 - p1));
      const double from = one ? 0 : -60, to = one ? 60 : 0;
      const auto moment = [&](double location, double move, int power) {
        return over_logistic(location, from, to, [&](double z) { return std::pow(bump(z + move, 0.5), power); });
      };
      const double side = (1 + p) / 2, first = moment(theta, 0, 1) / side, second = moment(theta, 0, 2) / side;
      square += p * slope(one) * slope(one) * 2 * (second - first * first);
      difference += p * slope(one) * (first - moment(phi, theta - phi, 1) / p);
    }
    const auto plain = moments("reinmax");
    const auto found = moments(fmt::format("reinmax_cv[noise={},eta={},rao_samples=1]", halfway ? "halfway" : "drawn", eta));
    CHECK(found.mean[0] == doctest::Approx(plain.mean[0] + (halfway ? 0 : eta * difference)).epsilon(1e-8));
    if (halfway) CHECK(found.trace == doctest::Approx(plain.trace + eta * eta * square).epsilon(1e-7));
    CHECK(square > 1e-4);
    CHECK(std::abs(difference) > 1e-3);
    ++visited;
  }
  CHECK(visited == 2);
}

}  // namespace
}  // namespace hardgrad::testing::reinmax_cv_test
