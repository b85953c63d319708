// Continuous noise of too many dimensions for quadrature: a million draws against the exact gradient.
#include <doctest/doctest.h>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::million_draws_test {
using namespace measurement;
namespace {

using verification::Recurrent;

constexpr int copies = 1000, replicates = 1000;

/// Copies of one example, each with independent noise.
Batch copies_of(const Batch& batch, int example) {
  auto many = batch.select(std::vector<int>(copies, example));
  for (int i = 0; i < copies; ++i) many.id[i] = static_cast<std::uint32_t>(i);
  return many;
}

/// Bonferroni-corrected p-value of "no bias" after copies x replicates draws.
double p_of_no_bias(const Estimator<double>& estimator, const Model<double>& model, const Batch& batch, const char* spec) {
  MeasureSettings settings;
  settings.method = Method::sampled;
  settings.replicates = replicates;
  return measure(Spec::parse(spec), estimator, model, batch, settings, Key(8)).bias_p_value;
}

TEST_CASE("continuous noise on categories: no bias in a million draws, independent and dependent choices") {
  constexpr double least = 1e-4 / 24;  // Bonferroni over the checks below
  const std::vector<const char*> specs = {"ars", "arsm", "rebar", "rebar[coupled=true]", "relax[relaxed_model=false]", "relax"};
  for (const auto* spec : specs) {
    CAPTURE(spec);
    for (const auto* toy : {linear_bits, "bits[bits=2,options=3,function=table,logit=0.2;-0.7;0.4]"}) {
      CAPTURE(toy);
      const auto model = model_of(toy);
      CHECK(p_of_no_bias(*estimator_of(spec, *model), *model, copies_of(one_example(), 0), spec) > least);
    }
    for (bool feeding : {false, true}) {
      CAPTURE(feeding);
      Recurrent<double> model(feeding);
      CHECK(p_of_no_bias(*estimator_of(spec, model), model, copies_of(Recurrent<double>::batch(), 1), spec) > least);
    }
  }
}

/// REINFORCE with losses that are a twentieth too small.
struct Shrunk final : Estimator<double> {
  Estimate<double> estimate(const Problem<double>& problem) const override {
    Sampled<double> sampled(problem, 1);
    auto signal = sampled.losses();
    for (auto& f : signal) f = 0.95 * f;
    const std::vector<std::vector<double>> every_step(sampled.steps(), signal);
    auto surrogate = add(sampled.score(every_step), sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release()};
  }
};

TEST_CASE("a million draws detect a gradient that is a twentieth too small") {
  const auto model = model_of(linear_bits);
  CHECK(p_of_no_bias(Shrunk(), *model, copies_of(one_example(), 0), "reinforce") < 1e-6);
}

}  // namespace
}  // namespace hardgrad::testing::million_draws_test
