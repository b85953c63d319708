// Choices that are numbers: every estimator for them has its claimed mean; every other one gives a reason.
#include <doctest/doctest.h>

#include <set>

#include "experiments/measurement/at_logits.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/verification/small_models.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::numbers_test {
using namespace measurement;
using namespace tasks;
namespace {

using verification::Drift;

const std::vector<std::string> one_draw = {"reinforce",
                                           "reinforce[baseline=0.7,reward_to_go=true]",
                                           "moving_baseline",
                                           "nvil",
                                           "self_critic",
                                           "self_critic[reward_to_go=true]",
                                           "soft_baseline",
                                           "entropy_regularised[lambda_e=0.3]",
                                           "entropy_regularised[lambda_e=0.3,entropy=sampled]",
                                           "entropy_regularised[lambda_e=0.3,lambda_r=1.7]",
                                           "variational_bound",
                                           "pathwise",
                                           "antithetic[samples=2]",
                                           "antithetic[samples=2,reward_to_go=true]",
                                           "pathwise[samples=2,antithetic=true]"};

TEST_CASE("the exact mean is the target's gradient on numbers that feed later ones, and on two simultaneous ones") {
  int visited = 0;
  for (bool feeding : {true, false}) {
    Drift<double> model(feeding);
    const auto batch = Drift<double>::batch();
    for (const auto& spec : one_draw)
      for (const auto* target : {"expected_loss", "analytic", "sampled"}) {
        auto aimed = Spec::parse(spec);
        const bool other = std::string(target) != "expected_loss";
        if (other && target_of(aimed).name() != "expected_loss") continue;
        if (other) aimed = aimed.with("target", "elbo").with("kl", target);
        CAPTURE(feeding);
        CAPTURE(aimed.text);
        const auto estimator = make_estimator<double>(aimed, model.structure(), Key(11));
        perturb_state(*estimator);
        CHECK(bias_of(*estimator, model, batch, 1e5) < 1e-8);
        ++visited;
      }
  }
  CHECK(visited == 2 * (3 * 11 + 4));
}

TEST_CASE("several draws and measure-valued derivatives have the exact mean, too") {
  const auto batch = Drift<double>::batch().select({0});
  Drift<double> together(false);
  for (const auto* spec :
       {"rloo[samples=2]", "optimal_baseline[samples=2]", "rloo[samples=2,target=elbo]", "pathwise[samples=2]"}) {
    CAPTURE(spec);
    CHECK(bias_of(spec, together, batch, 1e5) < 1e-6);
  }
  const auto toy = model_of("gaussians[function=cosine,k=0.8,mean=0.4,log_scale=-0.5]", true);
  for (const auto* spec : {"mvd[target=elbo]", "mvd[target=elbo,kl=sampled]", "rloo[samples=3]", "optimal_baseline[samples=3]",
                           "stratified[samples=1]", "systematic[samples=1]"}) {
    CAPTURE(spec);
    CHECK(bias_of(spec, *toy, one_example(), 2e5) < 1e-8);
  }
}

TEST_CASE("the exact gradient by quadrature agrees with finite differences of its value, and reports its accuracy") {
  Drift<double> model(true);
  const auto batch = Drift<double>::batch();
  for (const auto* target : {"expected_loss", "elbo", "elbo[kl=sampled]", "marginal_likelihood", "regularised[lambda_e=0.3]"}) {
    CAPTURE(target);
    const auto truth = exact_reference(target, model, batch, 1e6);
    CHECK(truth.nodes == 32);
    CHECK(truth.error <= 1e-8 * truth.norm());
    CHECK(truth.what().find("32 nodes a column") != std::string::npos);
    CHECK(largest_difference(truth.gradient, finite_differences(target, model, batch)) < 1e-7);
  }
}

TEST_CASE("more draws than a rule can visit are rejected with a message") {
  Drift<double> model(true);
  const auto estimator = estimator_of("rloo[samples=8]", model);
  CHECK_THROWS_WITH_AS(bias_of(*estimator, model, Drift<double>::batch(), 1e5), doctest::Contains("quadrature nodes"),
                       UsageError);
}

TEST_CASE("at the parameters of its distribution, a number's gradient is that of the toy's parameters") {
  const auto model = model_of("gaussians[columns=2,k=0.7,mean=-0.2;1.1,log_scale=0.1;-0.3]");
  const auto batch = one_example();
  const auto exact = exact_gradient_at_logits<double>({}, *model, batch, 1e6);
  CHECK(largest_difference(exact, exact_gradient({}, *model, batch, 1e6)) < 1e-12);
  for (const auto* spec : {"reinforce", "rloo[samples=3]", "pathwise", "mvd", "antithetic"}) {
    CAPTURE(spec);
    const auto estimator = estimator_of(spec, *model);
    Tape<double> tape;
    const auto found = gradients_at_logits(tape, *estimator, *model, batch, Key(6), 0, 3);
    REQUIRE(found.of_replicate.size() == 3);
    CHECK(found.sites.size() == 1);
    CHECK(found.sites[0].second == 4);
    for (std::uint64_t m = 0; m < 3; ++m)
      CHECK(largest_difference(found.of_replicate[m], gradient_of(*estimator, *model, batch, Key(6) / m)) < 1e-12);
  }
}

TEST_CASE("a quadrature that is too rough replaces a long run only on request, and is reported with its error") {
  const auto task = make_task(Spec::parse("glimpse[size=12,examples=10]"), Key(1));
  const auto batch = task->batch(Split::train, {0});
  const auto model = make_model<double>(Spec::parse("glimpse_reader[policy=gaussian,glimpses=2,patch=4,features=4,hidden=4]"),
                                        task->dimensions(), Key(2));
  const auto truth = exact_reference({}, *model, batch, 1e6);
  CHECK(truth.nodes == 12);
  CHECK(truth.rough());  // the sensor has a kink at every pixel
  const auto spec = Spec::parse("pathwise");
  const auto estimator = make_estimator<double>(spec, model->structure(), Key(1));
  MeasureSettings settings;
  settings.replicates = 20;
  const auto any = measure(spec, *estimator, *model, batch, settings, Key(3));
  CHECK(any.estimand == "20 x rloo[samples=16,reward_to_go=true]");
  settings.estimand = measurement::Estimand::enumerated;
  const auto wanted = measure(spec, *estimator, *model, batch, settings, Key(3));
  CHECK(wanted.estimand.find("12 nodes a column, good to") != std::string::npos);
  CHECK(wanted.estimand_standard_error == truth.error);
  CHECK(std::isnan(wanted.bias_p_value));
}

TEST_CASE("the estimators that support Normals, and the reasons of the others") {
  const auto model = make_model<double>(Spec::parse("glimpse_reader[policy=gaussian,glimpses=2]"),
                                        {{"height", 8}, {"width", 8}, {"classes", 3}}, Key(1), true);
  std::set<std::string> works;
  for (const auto& name : Estimators::instance().names()) {
    const auto reason = why_unsupported(Spec::parse(name), model->structure());
    if (reason.empty())
      works.insert(name);
    else
      CHECK(reason.find("site `place` is a Normal") != std::string::npos);
  }
  CHECK(works == std::set<std::string>{"antithetic",
                                       "entropy_regularised",
                                       "group_normalised",
                                       "iwae_reinforce",
                                       "james_stein",
                                       "maxrl",
                                       "moving_baseline",
                                       "mvd",
                                       "nvil",
                                       "optimal_baseline",
                                       "ovis",
                                       "path_only",
                                       "path_only",
                                       "pathwise",
                                       "policy_gradient",
                                       "reinforce",
                                       "rloo",
                                       "self_critic",
                                       "soft_baseline",
                                       "stratified",
                                       "systematic",
                                       "tvo",
                                       "vargrad",
                                       "variational_bound",
                                       "vimco",
                                       "wake_sleep",
                                       "wake_wake",
                                       "wsram"});
  CHECK(!why_unsupported(Spec::parse("variational_bound[enumerate=true]"), model->structure()).empty());
  CHECK(!why_unsupported(Spec::parse("entropy_regularised[semi=true]"), model->structure()).empty());
}

}  // namespace
}  // namespace hardgrad::testing::numbers_test
