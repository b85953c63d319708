// Exact moments of continuous noise: saturated logits, the quadrature's reported error, means of copies.
#include "experiments/measurement/quadrature.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "experiments/measurement/measure.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::quadrature_test {
using namespace measurement;
namespace {

/// Mean of f under one rule of a quadrature.
template <class F>
double mean(const Quadrature& q, int rule, F f) {
  double sum = 0;
  for (std::size_t i = 0; i < q.points.size(); ++i)
    if (q.weights[rule][i] > 0) sum += q.weights[rule][i] * f(q.points[i]);
  return sum;
}

TEST_CASE("logistic numbers are integrated with an edge at any place") {
  const double variance = std::numbers::pi * std::numbers::pi / 3;
  int places = 0;
  for (double edge : {-700.0, -30.0, -6.0, -0.4, 0.0, 6.0, 30.0, 700.0}) {
    CAPTURE(edge);
    const auto q = logistic_quadrature(edge, {}, 0);
    for (double z : q.points) REQUIRE(std::isfinite(z));
    CHECK(mean(q, 0, [](double z) { return z * z; }) == doctest::Approx(variance).epsilon(1e-9));
    // The probability beyond the edge is 1 / (1 + e^edge), however small; and E[z; z > b] = b / (1 + e^b) + log(1 + e^-b), b
    // the edge.
    const double beyond = 1 / (1 + std::exp(edge));
    CHECK(mean(q, 0, [&](double z) { return z > edge; }) == doctest::Approx(beyond).epsilon(1e-12));
    CHECK(mean(q, 0, [&](double z) { return z > edge ? z : 0; }) ==
          doctest::Approx(edge * beyond + std::log1p(std::exp(-std::abs(edge))) + std::max(0.0, -edge)).epsilon(1e-9));
    ++places;
  }
  CHECK(places == 8);
}

TEST_CASE("a quadrature's error follows the gain from halving its step: infinite without a gain, and none within rounding") {
  CHECK(quadrature_error(0.2, 0.1, 1) == doctest::Approx(0.3));
  CHECK(quadrature_error(1e-4, 1e-8, 1) == 1e-8);
  CHECK(std::isinf(quadrature_error(0.1, 0.2, 1)));
  CHECK(quadrature_error(1e-16, 2e-16, 1) < 1e-13);
}

Measurement exactly(const std::string& estimator, const std::string& model_spec, double cap = 2e6) {
  const auto model = model_of(model_spec);
  MeasureSettings settings;
  settings.method = Method::exact;
  settings.outcome_cap = cap;
  return measure(Spec::parse(estimator), *estimator_of(estimator, *model), *model, one_example(), settings, Key(1));
}

std::string bit(double logit, double t) { return fmt::format("bits[t={},logit={}]", t, logit); }

TEST_CASE("relaxations of saturated bits equal those of the mirrored problem, as far as floating-point probabilities allow") {
  int compared = 0;
  for (const std::string estimator :
       {"gumbel_softmax", "st_gumbel", "gumbel_rao[rao_samples=1]", "rebar[coupled=true]", "relax[relaxed_model=false]"})
    for (double logit : {2.0, 6.0, 15.0, 30.0, 100.0, 650.0}) {
      CAPTURE(estimator);
      CAPTURE(logit);
      const auto one = exactly(estimator, bit(-logit, 0.3), 3e4), other = exactly(estimator, bit(logit, 0.7), 3e4);
      REQUIRE(std::isfinite(one.variance));
      CHECK(one.variance > 0);
      CHECK(std::abs(one.variance - other.variance) < 1e-12 * one.variance);
      CHECK(std::abs(one.mean[0] + other.mean[0]) < 1e-12 * std::abs(one.mean[0]));
      ++compared;
    }
  CHECK(compared == 30);
}

TEST_CASE("noise drawn given the choice is integrated to the depth of the logit") {
  int compared = 0;
  for (double logit : {-15.0, -60.0, -100.0, -300.0, -650.0}) {
    CAPTURE(logit);
    const auto free = exactly("st_gumbel", bit(logit, 0.3), 3e4);
    const auto given = exactly("gumbel_rao[rao_samples=1]", bit(logit, 0.3), 3e4);
    CHECK(given.mean[0] < 0);
    CHECK(std::abs(given.mean[0] - free.mean[0]) < 1e-9 * std::abs(free.mean[0]));
    CHECK(std::abs(given.variance - free.variance) < 1e-9 * free.variance);
    ++compared;
  }
  CHECK(compared == 5);
}

TEST_CASE("a quadrature is split at kinks and jumps") {
  int parted = 0;
  const auto good = [&](const std::string& estimator, const char* power, const char* logit) {
    CAPTURE(power);
    CAPTURE(logit);
    const auto m = exactly(estimator, fmt::format("bits[function=norm,power={},t=0.3,logit={}]", power, logit));
    const auto [low, high] = m.intervals.at("variance");
    CHECK(high - low < 2e-9 * m.variance);
    const auto [least, most] = m.intervals.at("squared_bias");
    if (estimator == "rebar") CHECK((least == 0 && most < 1e-18 * m.variance));  // it is unbiased
    ++parted;
  };
  for (const auto* power : {"1", "1.5", "2.5", "3.5"})
    for (const auto* logit : {"0.4", "-5", "12"}) good("gumbel_softmax", power, logit);
  good("rebar", "1", "0.4");
  good("rebar", "1.5", "-2");
  CHECK(parted == 14);
}

TEST_CASE("a quadrature that cannot be split at its kinks reports its error, and its interval contains the truth") {
  int rough = 0;
  for (const auto* power : {"1", "1.5", "2.5"}) {
    CAPTURE(power);
    const auto m = exactly("rebar", fmt::format("bits[function=norm,power={},t=0.3,logit=0.4]", power), 2e5);
    CHECK(m.intervals.at("squared_bias")[0] == 0);  // it is unbiased
    CHECK(m.intervals.at("squared_bias")[1] > 0);
    CHECK(m.estimand.find("moments by quadrature, mean good to ") != std::string::npos);
    rough += m.intervals.at("variance")[1] - m.intervals.at("variance")[0] > 1e-7 * m.variance;
  }
  CHECK(rough == 3);
  const auto smooth = exactly("rebar", bit(0.4, 0.3));
  CHECK(smooth.intervals.at("variance")[1] - smooth.intervals.at("variance")[0] < 2e-9 * smooth.variance);
}

TEST_CASE("a mean of independent copies has the moments of one, divided by their number") {
  const auto* bits = "bits[bits=3,t=0.3;0.6;0.4,logit=0.4;-1;2]";
  const auto pair = exactly("arm", bits), four = exactly("arm[samples=4]", bits);
  CHECK(four.variance == doctest::Approx(pair.variance / 2).epsilon(1e-12));
  CHECK(four.rows == doctest::Approx(2 * pair.rows));
  CHECK(four.mean[1] == doctest::Approx(pair.mean[1]).epsilon(1e-12));
  int compared = 0;
  for (const auto* name : {"gumbel_softmax", "arm"}) {  // visited as a whole, and by one copy
    CAPTURE(name);
    const bool pairs = std::string(name) == "arm";
    const auto spec = fmt::format("{}[samples={}]", name, pairs ? 4 : 2);
    const auto whole = exactly(spec, bit(0.4, 0.3));
    const auto one = exactly(spec, bit(0.4, 0.3), whole.outcomes - 1);
    CHECK(one.outcomes < whole.outcomes);
    CHECK(one.variance == doctest::Approx(whole.variance).epsilon(1e-9));
    CHECK(one.mean[0] == doctest::Approx(whole.mean[0]).epsilon(1e-9));
    CHECK(one.rows == doctest::Approx(whole.rows));
    CHECK(std::isfinite(whole.cosine));
    CHECK(std::isnan(one.cosine));
    ++compared;
  }
  CHECK(compared == 2);
}

TEST_CASE("ARM weights both bits by their uniform numbers, also those that the flip does not change") {
  // E[(f - f~)^2 |u - 1/2|^2] in closed form: p = (1/2, 1/4), f = x + y. The first bit always flips, the second half the time.
  const auto m = exactly("arm", "bits[bits=2,reduce=sum,function=norm,power=1,t=0,logit=0;-1.0986122886681098]");
  // Regions of u_2: [0, 1/4), [1/4, 3/4), [3/4, 1]: E[(u_2 - 1/2)^2; region] = 7/192, 1/96, 7/192. f - f~ is 2 or 0 on the
  // outer ones, depending on the first bit, and 1 on the inner one.
  const double second = 0.5 * 4 * 2 * 7 / 192 + 1.0 / 96, first = (0.5 * 0.5 * 4 + 0.5) / 12;
  const double mean[] = {0.25, 3.0 / 16};
  CHECK(m.mean[0] == doctest::Approx(mean[0]).epsilon(1e-12));
  CHECK(m.variance == doctest::Approx(first + second - mean[0] * mean[0] - mean[1] * mean[1]).epsilon(1e-12));
}

TEST_CASE("a polynomial is integrated exactly") {
  const auto m = exactly("arm", bit(2.16, 0.502));
  const auto [low, high] = m.intervals.at("variance");
  CHECK(high - low <= 1e-12 * m.variance);
  CHECK(m.intervals.at("squared_bias")[1] < 1e-24);
}

}  // namespace
}  // namespace hardgrad::testing::quadrature_test
