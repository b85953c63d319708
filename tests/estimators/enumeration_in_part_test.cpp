// Estimators that enumerate a part of the choices: local_expectation, kmax_marginal, sparsemax.
#include <doctest/doctest.h>

#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/paths.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/outcomes.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::enumeration_in_part_test {
using namespace measurement;
namespace {

using verification::Recurrent;

TEST_CASE("local expectation has the exact mean, dependent and independent choices") {
  for (const auto* spec : {"local_expectation", "local_expectation[baseline=0.7]", "local_expectation[samples=2]"}) {
    for (bool feeding : {false, true}) {
      Recurrent<double> model(feeding);
      CAPTURE(spec);
      CAPTURE(feeding);
      CHECK(bias_of(spec, model, Recurrent<double>::batch()) < 1e-10);
    }
    for (const auto* toy : {three_bits, linear_bits, table_bits, one_bit, table_of_trits}) {
      CAPTURE(toy);
      auto model = model_of(toy);
      CHECK(bias_of(spec, *model) < 1e-10);
    }
  }
}

TEST_CASE("local expectation is exact on one choice and on independent ones, with less variance than REINFORCE on others") {
  for (const auto* toy : {three_bits, linear_bits, one_bit}) {
    auto model = model_of(toy);
    CHECK(variance_of("local_expectation", *model) < 1e-30);
  }
  Recurrent<double> model(true);
  // The last example has only one choice, although the model has more.
  CHECK(variance_of("local_expectation", model, Recurrent<double>::batch().select({2})) < 1e-28);
  const auto batch = Recurrent<double>::batch();
  CHECK(variance_of("local_expectation", model, batch) < variance_of("reinforce", model, batch));
  auto estimator = estimator_of("local_expectation", model);
  Tape<double> tape;
  KeyedRandomness random{Key(1)};
  CHECK(estimator->draw({tape, model, batch.select({1}), random}).episode->rows_evaluated() == 3 + 5 + 5);
}

/// The mean of local expectations, from the tree of all outcomes. Given the other choices z_{-t}, choice t is weighted with its
/// conditional, or (wrongly) with its prior, as if later choices did not depend on it.
class MeanOfLocalExpectations final : public Estimator<double> {
 public:
  explicit MeanOfLocalExpectations(bool prior_weights) : prior_weights_(prior_weights) {}
  Estimate<double> estimate(const Problem<double>& problem) const override {
    EnumerateHandler<double> handler;
    auto episode = std::make_unique<Episode<double>>(problem.tape, handler, 1);
    problem.model.run(problem.batch, *episode);
    const auto paths = paths_to(*episode, static_cast<int>(episode->steps().size()) - 1);
    const auto f = path_cost_values(*episode, paths, true);
    const int leaves = static_cast<int>(paths.size()), steps = static_cast<int>(paths.row.size());
    const auto log_p = [&](int t, int n) { return episode->log_probability(t).value().data[paths.row[t][n]]; };
    const auto option = [&](int t, int n) { return episode->steps()[t].choice.option()[paths.row[t][n]]; };
    std::vector<double> p(leaves);
    for (int n = 0; n < leaves; ++n) {
      for (int t = 0; t < steps; ++t) p[n] += log_p(t, n);
      p[n] = std::exp(p[n]);
    }
    auto surrogate = weighted_sum(path_cost(*episode, paths, true), std::span<const double>(p));
    for (int t = 0; t < steps; ++t) {
      std::vector<double> score(leaves);
      for (int z = 0; z < leaves; ++z) {
        std::vector<int> group;
        double total = 0;
        const auto weight = [&](int n) { return prior_weights_ ? std::exp(log_p(t, n)) : p[n]; };
        for (int n = 0; n < leaves; ++n) {
          bool alike = true;
          for (int u = 0; u < steps; ++u) alike &= u == t || option(u, n) == option(u, z);
          if (!alike) continue;
          group.push_back(n);
          total += weight(n);
        }
        for (int n : group) score[n] += p[z] * weight(n) / total * f[n];
      }
      auto at_leaves = gather_rows(episode->log_probability(t), std::span<const int>(paths.row[t]));
      surrogate = add(surrogate, weighted_sum(at_leaves, std::span<const double>(score)));
    }
    return {.surrogate = surrogate, .episode = std::move(episode)};
  }

 private:
  bool prior_weights_;
};

TEST_CASE("local expectations with the prior's weights are detected if choices depend on each other") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch().select({1});
  CHECK(bias_of(MeanOfLocalExpectations(false), model, batch) < 1e-10);
  CHECK(bias_of(MeanOfLocalExpectations(true), model, batch) > 1e-3);
}

TEST_CASE("kmax_marginal over every option is the exact marginal") {
  for (const auto* toy : {three_bits, linear_bits, table_bits, one_bit, table_of_trits}) {
    CAPTURE(toy);
    auto model = model_of(toy);
    auto all = estimator_of("kmax_marginal[k=9]", *model);
    CHECK(bias_of(*all, *model, one_example()) < 1e-10);
    CHECK(variance_of(*all, *model, one_example()) < 1e-28);
  }
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    const auto* spec = feeding ? "kmax_marginal[k=9]" : "kmax_marginal[k=3]";
    CHECK(bias_of(spec, model, Recurrent<double>::batch()) < 1e-10);
    CHECK(bias_of("kmax_marginal[k=1]", model, Recurrent<double>::batch()) > 1e-3);
  }
}

/// -grad log sum over the k most probable of the outcomes of p exp(-f), where f has no parameters.
std::vector<double> truncated(std::vector<Outcome> all, std::size_t k) {
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.p > b.p; });
  all.resize(std::min(k, all.size()));
  double total = 0;
  std::vector<double> gradient(all[0].score.size());
  for (const auto& o : all) total += o.p * std::exp(-o.f);
  for (const auto& o : all)
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= o.p * std::exp(-o.f) / total * o.score[i];
  return gradient;
}

TEST_CASE("kmax_marginal keeps the k most probable paths, or options, and its bias is the omitted part") {
  for (const auto* toy : {table_bits, table_of_trits, one_bit, "bits[bits=1,options=3,function=linear,logit=0.2;-0.1;0.4]"}) {
    auto model = model_of(toy);
    const auto all = all_outcomes(*model, one_example());
    for (int k : {1, 2, 3, 4}) {
      CAPTURE(toy);
      CAPTURE(k);
      const auto g =
          gradient_of(*estimator_of("kmax_marginal[k=" + std::to_string(k) + "]", *model), *model, one_example(), Key(1));
      const auto expected = truncated(all, k);
      for (std::size_t i = 0; i < g.size(); ++i) CHECK(std::abs(g[i] - expected[i]) < 1e-13);
    }
  }
  // Independent choices are truncated one by one: p(1) < 1/2 three times, so only bit 0 is kept.
  auto model = model_of(three_bits);
  const double p = 1 / (1 + std::exp(1.0));
  CHECK(gradient_of(*estimator_of("kmax_marginal[k=1]", *model), *model, one_example(), Key(1))[0] ==
        doctest::Approx(3 * p).epsilon(1e-13));
}

TEST_CASE("sparsemax has its target's gradient, and the target's value agrees with finite differences") {
  for (const std::string spec : {"sparsemax", "sparsemax[alpha=1.5]", "sparsemax[alpha=1.2]"}) {
    CAPTURE(spec);
    for (bool feeding : {false, true}) {
      Recurrent<double> model(feeding);
      const auto batch = Recurrent<double>::batch();
      CHECK(bias_of(spec, model, batch) < 1e-10);
      const auto differences = finite_differences(spec, model, batch);
      const auto gradient = exact_gradient(spec, model, batch, 1e6);
      for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(std::abs(gradient[i] - differences[i]) < 1e-7);
    }
    for (const auto* toy : {three_bits, linear_bits, table_bits, one_bit, table_of_trits}) {
      CAPTURE(toy);
      auto model = model_of(toy);
      CHECK(bias_of(spec, *model) < 1e-10);
    }
  }
}

TEST_CASE("entmax-1.5 in closed form: the exact gradient of one bit") {
  // Logits (0, phi): sqrt(p_1) = u, sqrt(p_0) = u - phi / 2, u = (phi / 2 + sqrt(2 - phi^2 / 4)) / 2; dp / dphi = u (u - phi / 2)
  // / (2 u - phi / 2).
  for (double phi : {-0.6, 0.0, 0.35, 1.7}) {
    const auto truth =
        exact_reference("sparsemax[alpha=1.5]", *model_of("bits[t=0.3,logit=" + std::to_string(phi) + "]"), one_example(), 10);
    const double u = (phi / 2 + std::sqrt(2 - phi * phi / 4)) / 2, v = u - phi / 2;
    CHECK(truth.value == doctest::Approx(v * v * 0.09 + u * u * 0.49).epsilon(1e-13));
    CHECK(std::abs(truth.gradient[0] - (0.49 - 0.09) * u * v / (u + v)) < 1e-10);
  }
}

TEST_CASE("sparsemax in closed form: two options, and a support of one") {
  // Logits (0, phi): the weight of 1 is (1 + phi) / 2 between -1 and 1; beyond that it is 0 or 1.
  for (double phi : {-0.6, 0.0, 0.35}) {
    auto model = model_of("bits[t=0.3,logit=" + std::to_string(phi) + "]");
    const auto truth = exact_reference("sparsemax", *model, one_example(), 10);
    CHECK(truth.value == doctest::Approx((1 - phi) / 2 * 0.09 + (1 + phi) / 2 * 0.49).epsilon(1e-13));
    CHECK(truth.gradient[0] == doctest::Approx(0.2).epsilon(1e-13));
  }
  auto decided = model_of("bits[bits=4,function=table,logit=2]");
  const Drawn drawn("sparsemax", *decided);
  const auto& estimate = drawn.estimate;
  CHECK(estimate.episode->rows_evaluated() == 1);  // softmax needs 16
  CHECK_THROWS_WITH_AS(gradient_of(*estimator_of("sparsemax[cap=3]", *model_of("bits[bits=3,function=table]")),
                                   *model_of("bits[bits=3,function=table]"), one_example(), Key(1)),
                       doctest::Contains("more than 3 rows to visit"), UsageError);
}

}  // namespace
}  // namespace hardgrad::testing::enumeration_in_part_test
