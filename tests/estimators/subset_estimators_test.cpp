// Estimators on subsets: relaxations at fixed noise, refusals, several columns.
#include <doctest/doctest.h>

#include "core/autodiff/gradient.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::subset_estimators_test {
namespace {

const std::string five = "subsets[options=5,picks=2,columns=2,function=pairs,logit=0.4;-0.9;0.2;1.1;-0.3]";

std::vector<double> gradient_of(const Drawn& drawn, const Model<double>& model) {
  std::vector<double> gradient(model.parameters().size());
  differentiate(drawn.estimate.surrogate, model.parameters(), gradient);
  return gradient;
}

}  // namespace

TEST_CASE("gumbel_top_k: at fixed noise the estimate is the derivative of the relaxed loss") {
  for (const char* spec : {"gumbel_top_k[samples=3]", "gumbel_top_k[temperature=0.2]", "gumbel_top_k[temperature=2]"}) {
    const auto model = model_of(five);
    const Drawn drawn(spec, *model);
    const auto gradient = gradient_of(drawn, *model);
    auto& logits = model->parameters().find("subsets.logits")->value.data;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double at = logits[i], step = 1e-5;
      logits[i] = at + step;
      const double above = Drawn(spec, *model).estimate.loss;
      logits[i] = at - step;
      const double below = Drawn(spec, *model).estimate.loss;
      logits[i] = at;
      CHECK(gradient[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-7));
    }
  }
}

TEST_CASE("gumbel_top_k: weights sum to k, near the k largest at low temperature, and equal them with hard=true") {
  const auto model = model_of(five);
  const Drawn soft("gumbel_top_k[samples=200,temperature=0.7]", *model),
      cold("gumbel_top_k[samples=200,temperature=1e-4]", *model), hard("gumbel_top_k[samples=200,hard=true]", *model);
  const auto weights = [](const Drawn& drawn) { return drawn.estimate.episode->steps()[0].choice.weights().value(); };
  int near = 0;
  for (std::size_t c = 0; c < 400; ++c) {
    double total = 0, ones = 0;
    bool alike = true;
    for (std::size_t i = 0; i < 5; ++i) {
      const double w = weights(hard)(c, i);
      total += weights(soft)(c, i);
      ones += w;
      CHECK((w == 0 || w == 1));
      alike = alike && std::abs(weights(cold)(c, i) - w) < 1e-6;
    }
    CHECK(total == doctest::Approx(2).epsilon(1e-12));
    CHECK(ones == 2);
    near += alike;
  }
  CHECK(near >= 395);
}

TEST_CASE("simple: no variance and no bias where the loss is linear, as for enumeration") {
  const auto linear = model_of("subsets[options=6,picks=3,function=linear,logit=0.4;-0.9;0.2;1.1;-0.3;2]");
  CHECK(bias_of("simple", *linear) < 1e-12);
  CHECK(variance_of("simple", *linear) < 1e-24);
  const auto pairs = model_of(five);
  CHECK(bias_of("simple", *pairs) > 1e-3);
  CHECK(bias_of("rloo[samples=2]", *pairs) < 1e-12);
  CHECK(variance_of("rloo[samples=2]", *pairs) < variance_of("reinforce[samples=2]", *pairs));
}

TEST_CASE("a subset of all options, or of one, is no choice or a category") {
  const auto all = model_of("subsets[options=3,picks=3]");
  CHECK(variance_of("reinforce", *all) == 0);
  CHECK(variance_of("simple", *all) == 0);
  const auto one = model_of("subsets[options=1,picks=1]");
  CHECK(variance_of("reinforce", *one) == 0);
  for (const char* spec : {"gumbel_top_k", "gumbel_top_k[hard=true]"}) {
    const Drawn drawn(spec, *all);
    for (int i = 0; i < 3; ++i) CHECK(drawn.estimate.episode->steps()[0].choice.weights().value()(0, i) == 1);
    for (double g : gradient_of(drawn, *all)) CHECK(g == 0);
  }
  CHECK_THROWS_WITH_AS(model_of("subsets[options=3,picks=4]"), doctest::Contains("picks=4 is more than options=3"), UsageError);
  CHECK_THROWS_AS(model_of("subsets[picks=0]"), UsageError);
  const auto sure = model_of("subsets[options=4,picks=2,logit=700;-700;700;-700]");
  CHECK(variance_of("rloo[samples=2]", *sure) == 0);
  CHECK(bias_of("simple", *sure) < 1e-12);
}

}  // namespace hardgrad::testing::subset_estimators_test
