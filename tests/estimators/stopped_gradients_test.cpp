// The hybrid loss of Mnih et al. 2014 in the glimpse reader: the exact gradient in the locator is the slope of the expected error,
// and in the classifier that of the expected cross-entropy.
#include <doctest/doctest.h>

#include "tests/core/models/model_check.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::stopped_gradients_test {
namespace {

std::string reader(const std::string& more) {
  return "glimpse_reader[grid=2,patch=2,glimpses=3,features=3,hidden=4,locator_units=3" + more + "]";
}
/// A network whose answers depend on the places.
std::unique_ptr<Model<double>> seeing(const std::string& more) {
  auto model = lively(reader(more), two_images_dimensions);
  for (double& w : model->parameters().find("glimpse.where.weight")->value) w *= 6;
  for (double& b : model->parameters().find("classifier.bias")->value) b = 0;
  return model;
}
/// The gradient in the parameters whose name starts with `group`.
std::vector<double> of_group(const Model<double>& model, const std::vector<double>& gradient, const std::string& group) {
  std::vector<double> some;
  for (const auto& p : model.parameters())
    if (p.name.starts_with(group))
      some.insert(some.end(), gradient.begin() + p.offset, gradient.begin() + p.offset + p.value.size());
  return some;
}
bool differ(const std::vector<double>& a, const std::vector<double>& b) { return largest_difference(a, b) > 1e-3; }

}  // namespace

TEST_CASE("hybrid loss: places learn from the expected error, answers from the expected cross-entropy") {
  const auto hybrid = seeing(",reward=correct,detached=true"), plain = seeing("");
  auto batch = two_images();
  measurement::ReferenceGradient truth;
  for (int label = 0; label < 9; ++label) {  // labels that the places decide whether it answers
    batch.integers["label"] = shaped<int>({2}, {label / 3, label % 3});
    truth = measurement::exact_reference({}, *hybrid, batch, 1e6);
    if (std::abs(truth.value - 0.5) < 0.45 && std::abs(truth.value - 0.5) > 1e-3) break;
  }
  REQUIRE(std::abs(truth.value - 0.5) < 0.45);
  const auto whole = measurement::exact_reference({}, *plain, batch, 1e6);
  const auto in = [&](const std::vector<double>& gradient, const char* group) { return of_group(*hybrid, gradient, group); };
  const auto slope = finite_differences({}, *hybrid, batch);  // of the expected error
  CHECK(largest_difference(in(truth.gradient, "locator"), in(slope, "locator")) < 1e-8);
  CHECK(differ(in(whole.gradient, "locator"), in(slope, "locator")));  // a mutant: the cross-entropy as reward
  CHECK(largest_difference(in(truth.gradient, "classifier"), in(whole.gradient, "classifier")) < 1e-12);
  CHECK(differ(in(slope, "classifier"), in(whole.gradient, "classifier")));  // the error has no slope there

  // Only with a detached state does the core learn nothing from places.
  const auto attached = seeing(",reward=correct");
  const auto with_places = measurement::exact_reference({}, *attached, batch, 1e6).gradient;
  CHECK(largest_difference(in(with_places, "locator"), in(truth.gradient, "locator")) < 1e-12);
  CHECK(differ(in(with_places, "core"), in(truth.gradient, "core")));
}

TEST_CASE("hybrid loss: leave-one-out is unbiased for it, also with a random first place") {
  const auto batch = two_images();
  for (const auto* more : {",reward=correct,detached=true", ",reward=correct,first=random"}) {
    CAPTURE(more);
    const auto model =
        lively("glimpse_reader[grid=2,patch=2,glimpses=2,features=3,hidden=4" + std::string(more) + "]", two_images_dimensions);
    CHECK(bias_of("rloo[samples=2]", *model, batch) < 1e-10);
  }
}

TEST_CASE("a reward is no likelihood: targets that average exp(-loss) are refused in one line") {
  const auto with_posterior = [](const char* more) { return lively(reader(more), two_images_dimensions, true); };
  const auto hybrid = with_posterior(",reward=correct"), plain = with_posterior("");
  for (const auto* spec : {"exact_marginal", "iwae_reinforce[samples=2]", "vimco[samples=2]", "tvo[samples=2]",
                           "wake_wake[samples=2]", "wake_sleep[samples=2]"}) {
    CAPTURE(spec);
    const auto why = [&](const Model<double>& model) { return why_unsupported(Spec::parse(spec), model.structure()); };
    CHECK(why(*hybrid).find("reward=correct") != std::string::npos);
    CHECK(why(*hybrid).find('\n') == std::string::npos);
    CHECK(why(*plain).find("reward=correct") == std::string::npos);
  }
  CHECK(why_unsupported(Spec::parse("exact_marginal"), hybrid->structure()) ==
        "exp(-loss) is no probability of the answer with reward=correct: take target expected_loss or elbo");
  CHECK(why_unsupported(Spec::parse("exact_marginal"), plain->structure()).empty());
  CHECK(why_unsupported(Spec::parse("rloo"), hybrid->structure()).empty());
  const auto images = two_images();
  measurement::ReferenceGradients<double> references(*hybrid, images, 1e6);
  CHECK(references.of("marginal_likelihood") == nullptr);
  CHECK(references.why() == hybrid->structure().lacks_likelihood());
}

}  // namespace hardgrad::testing::stopped_gradients_test
