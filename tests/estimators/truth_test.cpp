// The enumerated gradients are the gradients of the enumerated values: finite differences in double.
#include <doctest/doctest.h>

#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::truth_test {
using namespace measurement;
namespace {

using verification::Recurrent;

double disagreement(const Target& target, Model<double>& model, const Batch& batch) {
  const auto gradient = exact_reference(target, model, batch, 1e6).gradient;
  const auto differences = finite_differences(target, model, batch);
  return largest_difference(gradient, differences) / std::max(1.0, largest(gradient));
}

const std::vector<Target> scalar_targets = {"expected_loss",
                                            "marginal_likelihood",
                                            "elbo",
                                            "regularised[lambda_e=0.3]",
                                            "soft",
                                            "best_of[samples=3]",
                                            "importance_bound[samples=1]",
                                            "importance_bound[samples=2]",
                                            "thermodynamic[partition=0;1]",
                                            "thermodynamic[partition=0;0.1;0.4;1]"};

TEST_CASE("every target's enumerated gradient equals finite differences") {
  for (bool feeding : {false, true})
    for (const auto& target : scalar_targets) {
      Recurrent<double> model(feeding);
      CAPTURE(feeding);
      CAPTURE(target.text());
      CHECK(disagreement(target, model, Recurrent<double>::batch()) < 1e-7);
    }
}

TEST_CASE("finite differences agree on all bit models") {
  for (const auto* spec :
       {three_bits, "bits[bits=2,function=norm,t=0.3]", "bits[bits=3,options=3,function=linear,logit=0.2;-0.1;0.4]",
        "bits[bits=3,function=table,logit=0.3]"})
    for (const auto& target : scalar_targets) {
      CAPTURE(spec);
      CAPTURE(target.text());
      auto model = model_of(spec, true);
      CHECK(disagreement(target, *model, one_example()) < 1e-7);
    }
}

TEST_CASE("the factorised sum equals the tree over all steps") {
  // A factorised model run as if it were sequential: whole sets of choices are enumerated explicitly.
  auto model = model_of("bits[bits=2,t=0.3;0.8,logit=0.4;-0.7]");
  const auto batch = one_example();
  const double expected = exact_reference("expected_loss", *model, batch, 1e6).value;
  const double marginal = exact_reference("marginal_likelihood", *model, batch, 1e6).value;
  const double p[] = {1 / (1 + std::exp(-0.4)), 1 / (1 + std::exp(0.7))}, t[] = {0.3, 0.8};
  double mean = 0, likelihood = 0;
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 2; ++b) {
      const double weight = (a ? p[0] : 1 - p[0]) * (b ? p[1] : 1 - p[1]);
      const double f = (a - t[0]) * (a - t[0]) + (b - t[1]) * (b - t[1]);
      mean += weight * f;
      likelihood += weight * std::exp(-f);
    }
  CHECK(expected == doctest::Approx(mean).epsilon(1e-13));
  CHECK(marginal == doctest::Approx(-std::log(likelihood)).epsilon(1e-13));
}

TEST_CASE("too many leaves are rejected with their number") {
  auto model = model_of("bits[bits=12,function=table]");
  CHECK_THROWS_WITH_AS(exact_reference("expected_loss", *model, one_example(), 1000), doctest::Contains("needs 4096 rows"),
                       UsageError);
}

}  // namespace
}  // namespace hardgrad::testing::truth_test
