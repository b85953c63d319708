// One bit, f(b) = (b - t)^2: variances known in closed form.
#include <doctest/doctest.h>

#include "tests/support/exactness.hpp"

namespace hardgrad::testing::closed_forms_test {
using namespace measurement;
namespace {

struct OneBit {
  double phi, t;
  double p = 1 / (1 + std::exp(-phi)), v = p * (1 - p), d = 1 - 2 * t;
  double f0 = t * t, f1 = (1 - t) * (1 - t);
  std::unique_ptr<Model<double>> model = model_of("bits[t=" + std::to_string(t) + ",logit=" + std::to_string(phi) + "]");
  double variance(const std::string& estimator) const { return variance_of(estimator, *model); }
};

TEST_CASE("gradient, REINFORCE and leave-one-out on one bit equal their closed forms") {
  for (double phi : {-3.0, -0.4, 0.0, 1.2, 4.0})
    for (double t : {0.45, 0.499, 0.1, 0.9}) {
      const OneBit bit{phi, t};
      CAPTURE(phi);
      CAPTURE(t);
      const auto [p, v, d, f0, f1] = std::tuple{bit.p, bit.v, bit.d, bit.f0, bit.f1};
      CHECK(std::abs(exact_gradient({}, *bit.model, one_example(), 10)[0] - d * v) < 1e-14);
      for (double c : {0.0, 0.3}) {
        const double root = (1 - p) * f1 + p * f0 - c;
        CHECK(std::abs(bit.variance("reinforce[baseline=" + std::to_string(c) + "]") - v * root * root) < 1e-13);
      }
      for (int k : {2, 3, 4, 8}) {
        const double expected = d * d * v / k * (1 - 3 * v - (k - 3) * v / (k - 1));
        CHECK(std::abs(bit.variance("rloo[samples=" + std::to_string(k) + "]") - expected) < 1e-13);
      }
    }
}

TEST_CASE("the published figures at p = 1/2, t = .45") {
  const OneBit bit{0, 0.45};
  CHECK(bit.variance("reinforce") == doctest::Approx(1.5939e-2).epsilon(1e-4));
  CHECK(bit.variance("rloo[samples=2]") == doctest::Approx(6.25e-4).epsilon(1e-9));
  CHECK(bit.variance("rloo[samples=4]") == doctest::Approx(1.0417e-4).epsilon(1e-4));
}

TEST_CASE("baselines on one bit equal their closed forms") {
  for (double phi : {-3.0, 0.0, 1.2})
    for (double t : {0.45, 0.1}) {
      const OneBit bit{phi, t};
      CAPTURE(phi);
      CAPTURE(t);
      const auto [p, v, d, f0, f1] = std::tuple{bit.p, bit.v, bit.d, bit.f0, bit.f1};
      const auto constant = [&](double c) { return v * std::pow((1 - p) * f1 + p * f0 - c, 2); };
      CHECK(std::abs(bit.variance("self_critic") - constant(p > 0.5 ? f1 : f0)) < 1e-13);
      CHECK(std::abs(bit.variance("soft_baseline") - constant((p - t) * (p - t))) < 1e-13);
      // Two samples: the other sample's loss is the only estimate, for any weight.
      CHECK(std::abs(bit.variance("optimal_baseline[samples=2]") - bit.variance("rloo[samples=2]")) < 1e-15);
    }
}

TEST_CASE("relations that are theorems") {
  auto constant = model_of("bits[bits=3,t=0.5,logit=0.7]");  // f = 3/4 for all bits
  CHECK(variance_of("rloo[samples=3]", *constant) == 0);
  auto model = model_of("bits[bits=3,t=0.6;0.51;0.48,shared_logit=true,logit=-4]");
  for (const auto* exact : {"exact", "exact_marginal", "soft"}) {
    CAPTURE(exact);
    CHECK(variance_of(exact, *model) < 1e-30);
  }
  // Samples are independent: K of them divide REINFORCE's variance by K.
  const double one = variance_of("reinforce", *model);
  const double four = variance_of("reinforce[samples=4]", *model);
  CHECK(four == doctest::Approx(one / 4).epsilon(1e-12));
}

}  // namespace
}  // namespace hardgrad::testing::closed_forms_test
