// Sites of one model may differ in columns, options and width of the state.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/verification/small_models.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::differing_sites_test {
using namespace measurement;
TEST_CASE("with sites that differ in columns, options and state width, every estimator has its claimed mean") {
  const verification::TwoSites model;
  const auto batch = verification::TwoSites::batch();
  int unbiased = 0, others = 0;
  for (const auto& name : Estimators::instance().names()) {
    const auto spec = Spec::parse(name);
    if (!why_unsupported(spec, model.structure()).empty()) continue;
    CAPTURE(name);
    const auto estimator = make_estimator<double>(spec, model.structure(), Key(11));
    perturb_state(*estimator);
    for (double x : gradient_of(*estimator, model, batch, Key(2))) CHECK(std::isfinite(x));
    try {
      const double bias = bias_of(*estimator, model, batch, 2e4);
      if (claims_unbiased(spec)) CHECK(bias < 1e-9);
      ++(claims_unbiased(spec) ? unbiased : others);
    } catch (const NotExact&) {  // continuous noise, or too many samples
    }
  }
  CHECK(unbiased >= 20);
  CHECK(others >= 3);
}

}  // namespace hardgrad::testing::differing_sites_test
