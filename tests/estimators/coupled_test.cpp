// Coupled samples: antithetic bits and their kin.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/exactness.hpp"
#include "tests/support/recurrent.hpp"

namespace hardgrad::testing {
namespace {

TEST_CASE("coupled bits have the gradient of the expected loss as mean, dependent and independent choices") {
  for (const auto* spec : {"disarm", "disarm[samples=4]", "disarm[reward_to_go=true]"}) {
    CAPTURE(spec);
    for (bool feeding : {false, true}) {
      CAPTURE(feeding);
      Recurrent<double> model(feeding, Key(5), 2);
      const auto batch = Recurrent<double>::batch(2).select(std::string(spec).find("samples=4") == std::string::npos ? std::vector{0, 1, 2} : std::vector{1});
      CHECK(bias_of(*estimator_of(spec, model), model, batch) < 1e-10);
    }
    for (const auto* toy : {"bits[bits=3,t=0.6;0.51;0.48,shared_logit=true,logit=-1]", "bits[bits=2,function=table,logit=0.3;-0.8]",
                            "bits[bits=2,function=norm,reduce=mean,t=0.3]", "bits[logit=2]"}) {
      CAPTURE(toy);
      const auto model = model_of(toy);
      CHECK(bias_of(*estimator_of(spec, *model), *model, one_example()) < 1e-10);
    }
  }
}

TEST_CASE("the variance of disarm on one bit is the closed form") {
  for (double phi : {-2.0, 0.0, 0.4}) {
    const double p = 1 / (1 + std::exp(-phi)), m = std::min(p, 1 - p), t = 0.45, D = 1 - 2 * t;
    const auto model = model_of(fmt::format("bits[t={},logit={}]", t, phi));
    CHECK(variance_of(*estimator_of("disarm", *model), *model, one_example()) ==
          doctest::Approx(D * D * (1 - m) * (1 - m) * m * (0.5 - m)).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace hardgrad::testing
