// Control variates built from relaxations and derivatives of the loss.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/score_function.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/recurrent.hpp"

namespace hardgrad::testing {
namespace {

const char* const toys[] = {"bits[bits=3,t=0.6;0.51;0.48,shared_logit=true,logit=-1]",
                            "bits[bits=2,options=3,function=linear,logit=0.2;-0.1;0.4]",
                            "bits[bits=2,function=table,logit=0.3;-0.8]", "bits[logit=2]"};

/// The estimator's own parameters away from their start.
void stir(Estimator<double>& estimator) {
  double x = 0.3;
  for (auto& parameter : estimator.own_parameters())
    for (auto& value : parameter.value.data) value = x = std::sin(17 * x + 1);
}

void check_categorical(const std::string& spec) {
  CAPTURE(spec);
  const bool many = spec.find("samples=3") != std::string::npos;
  for (bool feeding : {false, true}) {
    CAPTURE(feeding);
    Recurrent<double> model(feeding);
    const auto batch = many ? Recurrent<double>::batch().select({1}) : Recurrent<double>::batch();
    auto estimator = estimator_of(spec, model);
    stir(*estimator);
    CHECK(bias_of(*estimator, model, batch) < 1e-10);
  }
  for (const auto* toy : toys) {
    CAPTURE(toy);
    const auto model = model_of(toy);
    auto estimator = estimator_of(spec, *model);
    stir(*estimator);
    CHECK(bias_of(*estimator, *model, one_example()) < 1e-10);
  }
}

TEST_CASE("muprop has no bias, dependent and independent choices") {
  for (const auto* spec : {"muprop", "muprop[samples=2]", "muprop[reward_to_go=true]"}) check_categorical(spec);
}

TEST_CASE("the variance of muprop on one bit is the closed form, and zero where f is linear") {
  for (double phi : {-2.5, 0.0, 1.2})
    for (double t : {0.45, 0.1}) {
      const double p = 1 / (1 + std::exp(-phi)), v = p * (1 - p);
      const auto model = model_of(fmt::format("bits[t={},logit={}]", t, phi));
      CHECK(variance_of(*estimator_of("muprop", *model), *model, one_example()) ==
            doctest::Approx(v * (std::pow(1 - p, 5) + std::pow(p, 5)) - v * v * (1 - 2 * p) * (1 - 2 * p)).epsilon(1e-10));
    }
  const auto linear = model_of("bits[bits=3,options=3,function=linear,logit=0.2;-0.1;0.4]");
  CHECK(variance_of(*estimator_of("muprop", *linear), *linear, one_example()) < 1e-28);
}

/// muprop on one bit with (b - t)^2, its compensating term f'(p) grad p taken off again.
struct Uncompensated final : Estimator<double> {
  std::unique_ptr<Estimator<double>> inner;
  double slope = 0;
  Estimate<double> estimate(const Problem<double>& problem) const override {
    auto estimate = inner->estimate(problem);
    auto p = sigmoid(problem.tape.parameter(*problem.model.parameters().begin()));
    estimate.surrogate = add(estimate.surrogate, sum(p, -slope));
    return estimate;
  }
};

TEST_CASE("muprop without its compensating term is caught") {
  const auto model = model_of("bits[t=0.3,logit=0.7]");
  Uncompensated twin;
  twin.inner = estimator_of("muprop", *model);
  CHECK(bias_of(twin, *model, one_example()) < 1e-10);
  twin.slope = 2 * (1 / (1 + std::exp(-0.7)) - 0.3);
  CHECK(bias_of(twin, *model, one_example()) > 1e-3);
}

}  // namespace
}  // namespace hardgrad::testing
