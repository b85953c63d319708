// Simultaneous choices: the columns of a site, against sums over every separately run set of choices.
#include <doctest/doctest.h>

#include <set>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::columns_test {
using namespace measurement;
namespace {

using verification::Recurrent;

struct Path {
  double p = 1, f = 0;
};

/// Every set of choices of the batch's only example, each in a separate run. Column d of a question has options - d options, at
/// least two.
std::vector<Path> every_path(const Model<double>& model, const Batch& batch, int columns) {
  const int length = batch.ints("length").flat(0), options = batch.ints("options").flat(0);
  std::vector<int> most;  // number of options, for every choice
  for (int t = 0; t < Recurrent<double>::longest; ++t)
    for (int d = 0; d < columns; ++d) most.push_back(t >= length ? 1 : d == 0 ? options : std::max(options - d, 2));
  std::vector<Path> all;
  std::vector<int> set(most.size());
  while (true) {
    std::vector<std::vector<int>> forced(Recurrent<double>::longest);
    for (std::size_t i = 0; i < set.size(); ++i) forced[i / columns].push_back(set[i]);
    ForcedHandler<double> handler(forced);
    Tape<double> tape;
    Episode<double> episode(tape, handler, 1);
    model.run(batch, episode);
    Path path;
    for (int t = 0; t < Recurrent<double>::longest; ++t) {
      const auto log_p =
          episode.steps()[t].question.categories().log_p().value();  // [D, S]: computed here, without log_probability
      for (int d = 0; d < columns; ++d) path.p *= std::exp(log_p(d, forced[t][d]));
    }
    for (const auto& cost : episode.costs()) path.f += cost.loss.item();
    all.push_back(path);
    std::size_t i = 0;
    while (i < set.size() && ++set[i] == most[i]) set[i++] = 0;
    if (i == set.size()) return all;
  }
}

TEST_CASE("columns: enumeration takes their product, and its values equal the sums over every set of choices") {
  for (bool feeding : {true, false})
    for (int columns : {1, 2, 3})
      for (int b = 0; b < 3; ++b) {
        CAPTURE(feeding);
        CAPTURE(columns);
        CAPTURE(b);
        const Recurrent<double> model(feeding, Key(5), 3, 0, columns);
        const auto batch = Recurrent<double>::batch(3).select({b});
        const auto paths = every_path(model, batch, columns);
        double mass = 0, mean = 0, likelihood = 0;
        for (const auto& [p, f] : paths) {
          mass += p;
          mean += p * f;
          likelihood += p * std::exp(-f);
        }
        CHECK(mass == doctest::Approx(1).epsilon(1e-13));
        CHECK(model.outcomes(batch)[0] == paths.size());
        CHECK(exact_reference("expected_loss", model, batch, 1e6).value == doctest::Approx(mean).epsilon(1e-12));
        CHECK(exact_reference("marginal_likelihood", model, batch, 1e6).value ==
              doctest::Approx(-std::log(likelihood)).epsilon(1e-12));
      }
}

TEST_CASE("columns: gradients of the exact targets agree with their values") {
  for (bool feeding : {true, false}) {
    Recurrent<double> model(feeding, Key(5), 3, 0, 2);
    const auto batch = Recurrent<double>::batch(3);
    for (const Target target : {"expected_loss", "marginal_likelihood", "elbo", "soft", "regularised[lambda_e=0.3]"}) {
      CAPTURE(target.text());
      CHECK(largest_difference(exact_reference(target, model, batch, 1e6).gradient, finite_differences(target, model, batch)) <
            1e-7);
    }
  }
}

TEST_CASE("columns: independent steps cost the product of their options each, dependent ones a tree of these") {
  const auto rows = [](bool feeding) {
    const Recurrent<double> model(feeding, Key(5), 3, 0, 2);
    const auto batch = Recurrent<double>::batch(3).select({1});  // two steps of 3 x 2
    return Drawn("exact", model, batch).estimate.rows();
  };
  CHECK(rows(false) == 6 + 6 + 1);
  CHECK(rows(true) == 6 + 36 + 36);
}

TEST_CASE("columns: sums and relaxations for one choice also hold for several") {
  int visited = 0;
  for (bool feeding : {true, false}) {
    const Recurrent<double> model(feeding, Key(5), 3, 0, 2);
    const auto batch = Recurrent<double>::batch(3).select({1});
    for (const auto* spec : {"reinforce",
                             "rloo[samples=2]",
                             "moving_baseline",
                             "nvil",
                             "self_critic",
                             "soft_baseline",
                             "exact",
                             "exact_marginal",
                             "variational_bound",
                             "vimco[samples=2]",
                             "iwae_reinforce[samples=2]",
                             "rloo[samples=2,target=elbo]",
                             "rloo[samples=2,target=elbo,kl=sampled]",
                             "self_critic[target=elbo]",
                             "optimal_baseline[samples=2]",
                             "entropy_regularised",
                             "entropy_regularised[entropy=sampled]",
                             "entropy_regularised[semi=true]",
                             "stratified[samples=2]",
                             "systematic[samples=2]",
                             "disarm_tree",
                             "disarm_stick",
                             "carms[samples=2]",
                             "muprop",
                             "muprop[target=elbo,kl=sampled]",
                             "disarm_tree[target=elbo]",
                             "local_expectation",
                             "local_expectation[target=elbo,kl=sampled]",
                             "double_cv[samples=2,alpha=0.3]",
                             "double_cv[samples=2,alpha=0.3,reward_to_go=true]",
                             "rodeo[samples=2,hidden=3,alpha=0.3,beta=-0.4]",
                             "sparsemax",
                             "unordered_set[samples=3]",
                             "sum_and_sample[samples=3]"}) {
      CAPTURE(feeding);
      CAPTURE(spec);
      auto estimator = estimator_of(spec, model);
      perturb_state(*estimator);
      CHECK(bias_of(*estimator, model, batch) < 1e-10);
      ++visited;
    }
    for (const auto* spec : {"straight_through", "gumbel_softmax", "st_gumbel", "gumbel_rao", "gapped_st", "reinmax",
                             "reinmax_rao", "reinmax_cv", "implicit_mle"})
      for (double g : gradient_of(*estimator_of(spec, model), model, batch, Key(3))) CHECK(std::isfinite(g));
  }
  CHECK(visited == 68);
}

TEST_CASE("columns of bits: antithetic ones have the gradient as mean, for any other choices") {
  int visited = 0;
  for (bool feeding : {true, false}) {
    const Recurrent<double> model(feeding, Key(5), 2, 0, 2);
    const auto batch = Recurrent<double>::batch(2).select({1});
    for (const auto* spec :
         {"arm", "disarm", "arms[samples=2]", "arms[samples=3]", "carms[samples=2]", "disarm_tree", "disarm_stick",
          "disarm[target=elbo]", "disarm[target=elbo,kl=sampled]", "disarm[reward_to_go=true]", "mvd", "mvd[target=elbo]"}) {
      CAPTURE(feeding);
      CAPTURE(spec);
      CHECK(bias_of(spec, model, batch) < 1e-9);
      ++visited;
    }
  }
  CHECK(visited == 24);
}

TEST_CASE("columns: every estimator supports them") {
  const Recurrent<double> model(true, Key(5), 2, 0, 2);
  const std::set<std::string> cannot = {"antithetic",   "local_disarm", "nearest_code", "pathwise",
                                        "sparse_mixer", "ugc",          "wake_sleep"};  // for other reasons
  int works = 0;
  for (const auto& name : Estimators::instance().names()) {
    const auto reason = why_unsupported(Spec::parse(name), model.structure());
    works += reason.empty();
    CHECK_MESSAGE(reason.empty() != cannot.count(name), name << ": " << reason);
  }
  CHECK(works == 63);
}

TEST_CASE("columns with separate costs: enumerated in parallel, and their marginal likelihood is a product") {
  const auto together = model_of("bits[bits=3,options=3,t=0.3;0.6;0.1,logit=0.2;-0.1;0.4;0;0.3;-0.5;1;0.1;-0.2]");
  const auto truth = exact_reference({}, *together, one_example(), 3);  // three rows, where a product has 27
  double mean = 0, likelihood = 0;
  std::vector<double> gradient;
  for (const auto* one : {"bits[options=3,t=0.3,logit=0.2;-0.1;0.4]", "bits[options=3,t=0.6,logit=0;0.3;-0.5]",
                          "bits[options=3,t=0.1,logit=1;0.1;-0.2]"}) {
    const auto model = model_of(one);
    const auto own = exact_reference({}, *model, one_example(), 3);
    mean += own.value;
    gradient.insert(gradient.end(), own.gradient.begin(), own.gradient.end());
    likelihood += exact_reference("marginal_likelihood", *model, one_example(), 3).value;
  }
  CHECK(truth.value == doctest::Approx(mean).epsilon(1e-14));
  CHECK(largest_difference(truth.gradient, gradient) < 1e-14);
  CHECK(exact_reference("marginal_likelihood", *together, one_example(), 3).value ==
        doctest::Approx(likelihood).epsilon(1e-14));
}

TEST_CASE("columns with separate costs: credit by column reduces the variance without bias") {
  const auto model = model_of("bits[bits=3,t=0.3;0.6;0.1,logit=0.2;-0.1;0.4]");
  int visited = 0;
  for (const auto* estimator :
       {"reinforce", "rloo[samples=2", "moving_baseline", "nvil", "optimal_baseline[samples=2", "self_critic", "soft_baseline",
        "stratified[samples=2", "systematic[samples=2", "disarm", "arms[samples=2", "carms[samples=2", "disarm_tree",
        "disarm_stick", "muprop", "double_cv[samples=2,alpha=0.1"}) {
    CAPTURE(estimator);
    const std::string name(estimator);
    const bool settings = name.find('[') != std::string::npos;
    double variance[2];
    for (bool to_go : {false, true}) {
      const auto spec = name + (settings ? "," : "[") + "reward_to_go=" + (to_go ? "true]" : "false]");
      CHECK(bias_of(spec, *model) < 1e-12);
      variance[to_go] = variance_of(spec, *model);
    }
    CHECK(variance[1] < variance[0] + 1e-15);
    ++visited;
  }
  CHECK(visited == 16);
}

TEST_CASE("columns: a mean that omits one of them is detected") {
  class Forgetful final : public Estimator<double> {
    Estimate<double> estimate(const Problem<double>& problem) const override {
      Sampled<double> sampled(problem, 1);
      auto surrogate = sampled.path();
      const auto f = sampled.losses();
      for (const auto& [question, choice] : sampled.episode().steps()) {
        std::vector<double> weight(question.categories().log_p().value().size());
        for (std::size_t r = 0; r < choice.rows->size(); ++r) {
          const auto cell = static_cast<std::size_t>(choice.rows->parent[r]) * 2;  // the first column only
          weight[cell * question.categories().log_p().cols() + choice.option()[2 * r]] += f[r] / static_cast<double>(f.size());
        }
        surrogate = add(surrogate, weighted_sum(question.categories().log_p(), std::span<const double>(weight)));
      }
      return {.surrogate = surrogate, .episode = sampled.release()};
    }
  };
  const Recurrent<double> model(true, Key(5), 3, 0, 2);
  CHECK(bias_of(Forgetful(), model, Recurrent<double>::batch(3).select({1})) > 1e-3);
}

}  // namespace
}  // namespace hardgrad::testing::columns_test
