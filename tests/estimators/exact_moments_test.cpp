// Every estimator with categorical noise has exactly its claimed mean, and wrong ones are detected.
#include <doctest/doctest.h>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "experiments/measurement/lengths.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::exact_moments_test {
using namespace measurement;
namespace {

using verification::Recurrent;

const std::vector<std::string> unbiased = {
    "exact",
    "exact_marginal",
    "soft",
    "reinforce",
    "reinforce[samples=2,baseline=0.7]",
    "reinforce[reward_to_go=true]",
    "moving_baseline",
    "moving_baseline[samples=2,reward_to_go=true]",
    "nvil",
    "nvil[samples=2,reward_to_go=true]",
    "rloo[samples=2]",
    "rloo[samples=3,reward_to_go=true]",
    "self_critic",
    "self_critic[samples=2,reward_to_go=true]",
    "soft_baseline",
    "soft_baseline[samples=2,reward_to_go=true]",
    "optimal_baseline[samples=2]",
    "optimal_baseline[samples=3,reward_to_go=true]",
    "entropy_regularised[lambda_e=0.3]",
    "entropy_regularised[lambda_e=0.3,samples=2,reward_to_go=true]",
    "entropy_regularised[lambda_e=0.3,entropy=sampled]",
    "entropy_regularised[lambda_e=0.3,lambda_r=1.7]",
    "entropy_regularised[lambda_e=0.3,lambda_r=1.7,semi=true,samples=2]",
    "variational_bound",
    "variational_bound[samples=2]",
    "variational_bound[samples=2,reward_to_go=true]",
    "variational_bound[enumerate=true]",
};

TEST_CASE("the exact mean is the target's gradient on a recurrent model, dependent and independent choices") {
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    for (const auto& spec : unbiased) {
      CAPTURE(feeding);
      CAPTURE(spec);
      auto estimator = estimator_of(spec, model);
      perturb_state(*estimator);
      // A single example, so that the 3^3 trajectories for K = 3 are affordable.
      const auto batch =
          spec.find("samples=3") == std::string::npos ? Recurrent<double>::batch() : Recurrent<double>::batch().select({1});
      CHECK(bias_of(*estimator, model, batch) < 1e-10);
    }
  }
}

TEST_CASE("the exact mean is the target's gradient on bits, binary and categorical, shared and separate") {
  for (const auto* toy : {three_bits, linear_bits, table_bits, "bits[bits=2,function=norm,reduce=mean,t=0.3]", "bits[logit=2]"})
    for (const auto& spec : unbiased) {
      CAPTURE(toy);
      CAPTURE(spec);
      auto model = model_of(toy, true);
      auto estimator = estimator_of(spec, *model);
      perturb_state(*estimator);
      CHECK(bias_of(*estimator, *model, one_example()) < 1e-10);
    }
}

TEST_CASE("multisets and ordered samples have the same moments") {
  struct Ordered final : Estimator<double> {
    std::unique_ptr<Estimator<double>> inner;
    Estimate<double> estimate(const Problem<double>& p) const override { return inner->draw(p); }
    bool exchangeable() const override { return false; }
  };
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch().select({1});
  const auto truth = exact_reference({}, model, batch, 1e6);
  Ordered ordered;
  ordered.inner = estimator_of("rloo[samples=3]", model);
  const auto a = exact_moments(*ordered.inner, model, batch, truth.of_example, 1e6, true);
  const auto b = exact_moments(ordered, model, batch, truth.of_example, 1e6, true);
  CHECK(a.outcomes < b.outcomes);
  CHECK(b.outcomes == 729);
  CHECK(a.outcomes == 165);  // C(9 + 2, 3)
  for (std::size_t i = 0; i < a.covariance.size(); ++i)
    REQUIRE(a.covariance[i] == doctest::Approx(b.covariance[i]).epsilon(1e-10));
}

TEST_CASE("samples that may not be permuted are visited in every order, even if the estimator does not declare it") {
  struct Rising : Estimator<double> {  // sample k of three is weighted by k
    Estimate<double> estimate(const Problem<double>& p) const override {
      Sampled<double> sampled(p, 3);
      auto signal = sampled.losses();
      for (std::size_t r = 0; r < signal.size(); ++r) signal[r] *= static_cast<double>(r % 3 + 1) / 2;
      const std::vector<std::vector<double>> every_step(sampled.steps(), signal);
      const auto surrogate = add(sampled.score(every_step), sampled.path());
      return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
    }
  };
  struct Ordered final : Rising {
    bool exchangeable() const override { return false; }
  };
  int compared = 0;
  for (const auto* spec : {"bits[options=3,t=0.3,logit=0;1;2]", "bits[options=4,function=table,table_seed=8,logit=9;0;-1;2]"}) {
    CAPTURE(spec);
    const auto model = model_of(spec);
    const auto truth = exact_reference({}, *model, one_example(), 1e6);
    const auto tried = exact_moments(Rising(), *model, one_example(), truth.of_example, 1e6);
    const auto said = exact_moments(Ordered(), *model, one_example(), truth.of_example, 1e6);
    CHECK(tried.outcomes == said.outcomes);
    CHECK(tried.trace == doctest::Approx(said.trace).epsilon(1e-12));
    CHECK(distance_between(tried.mean, truth.gradient) < 1e-12 * (1 + length_of(truth.gradient)));
    ++compared;
  }
  CHECK(compared == 2);
}

TEST_CASE("moments of one copy replace those of all, if these are too many") {
  for (const std::string name : {"implicit_mle", "bitflip", "rebar", "relax"}) {
    CAPTURE(name);
    const auto model = model_of(name == "bitflip" ? "bits[bits=2,t=0.3,logit=0.4]" : "bits[bits=1,t=0.3,logit=0.4]");
    const auto truth = exact_reference({}, *model, one_example(), 1e6);
    const auto moments = [&](const Estimator<double>& estimator, double cap) {
      return exact_moments(estimator, *model, one_example(), truth.of_example, cap);
    };
    const auto one = estimator_of(name + "[samples=1]", *model), two = estimator_of(name + "[samples=2]", *model);
    REQUIRE(two->copies() == 2);
    const auto of_one = moments(*one, 1e6), of_two = moments(*two, 1e6);
    CHECK(of_one.trace > 1e-4);
    CHECK(std::abs(2 * of_two.trace - of_one.trace) <= 2 * of_two.trace_error + of_one.trace_error + 1e-12);
    if (of_two.continuous) continue;  // only one copy is affordable
    const auto in_turn = moments(*two, of_two.outcomes - 1);
    CHECK(in_turn.outcomes < of_two.outcomes);
    CHECK(std::abs(in_turn.trace - of_two.trace) < 1e-12);
  }
}

TEST_CASE("an outcome space beyond the cap is rejected") {
  Recurrent<double> model(true);
  auto estimator = estimator_of("rloo[samples=4]", model);
  CHECK_THROWS_WITH_AS(bias_of(*estimator, model, Recurrent<double>::batch(), 30),
                       doctest::Contains("more than its share 10 of the cap"), UsageError);
}

// Deliberately wrong estimators: each differs from a right one by one mistake known from publications.
enum class Mistake { none, sign, no_path_term, baseline_includes_itself, later_costs_only, no_entropy_credit };

class Wrong final : public Estimator<double> {
 public:
  explicit Wrong(Mistake mistake) : mistake_(mistake) {}
  Estimate<double> estimate(const Problem<double>& problem) const override {
    Sampled<double> sampled(problem, 2);
    std::vector<std::vector<double>> signal;
    for (int t = 0; t < sampled.steps(); ++t) {
      auto f = sampled.returns(t, mistake_ == Mistake::later_costs_only ? Credit::reward_to_go : Credit::whole);
      if (mistake_ == Mistake::later_costs_only) {  // the last cost is wrongly treated as irrelevant
        const auto later =
            t + 1 < sampled.steps() ? sampled.returns(t + 1, Credit::reward_to_go) : std::vector<double>(f.size());
        f = later;
      }
      if (mistake_ == Mistake::baseline_includes_itself)
        for (std::size_t r = 0; r < f.size(); r += 2) {
          const double mean = (f[r] + f[r + 1]) / 2;
          f[r] -= mean;
          f[r + 1] -= mean;
        }
      if (mistake_ == Mistake::sign)
        for (auto& v : f) v = -v;
      signal.push_back(f);
    }
    auto surrogate = sampled.score(signal);
    if (mistake_ != Mistake::no_path_term) surrogate = add(surrogate, sampled.path());
    return {.surrogate = surrogate, .own_loss = {}, .episode = sampled.release()};
  }

 private:
  Mistake mistake_;
};

TEST_CASE("the exact mean detects wrong estimators") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  CHECK(bias_of(Wrong(Mistake::none), model, batch) < 1e-10);
  for (auto mistake : {Mistake::sign, Mistake::no_path_term, Mistake::baseline_includes_itself, Mistake::later_costs_only}) {
    CAPTURE(static_cast<int>(mistake));
    CHECK(bias_of(Wrong(mistake), model, batch) > 1e-3);
  }
}

}  // namespace
}  // namespace hardgrad::testing::exact_moments_test
