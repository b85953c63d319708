// Estimators that treat an example's samples as a group: GRPO and MaxRL, against sums over every group of outcomes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/outcomes.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::groups_test {
using namespace measurement;
namespace {

/// Exact mean and trace of an estimate that is a function of K independently drawn outcomes.
Moments over_groups(const Model<double>& model, int samples,
                    const std::function<std::vector<double>(const std::vector<const Outcome*>&)>& estimate) {
  const auto all = all_outcomes(model, one_example());
  const std::size_t size = model.parameters().size();
  Moments moments;
  moments.mean.resize(size);
  double squares = 0;
  std::vector<const Outcome*> group(samples);
  for (std::size_t code = 0; code < std::pow(all.size(), samples); ++code) {
    double p = 1;
    for (std::size_t k = 0, rest = code; k < group.size(); ++k, rest /= all.size()) {
      group[k] = &all[rest % all.size()];
      p *= group[k]->p;
    }
    const auto g = estimate(group);
    for (std::size_t i = 0; i < size; ++i) {
      moments.mean[i] += p * g[i];
      squares += p * g[i] * g[i];
    }
  }
  moments.trace = squares;
  for (double m : moments.mean) moments.trace -= m * m;
  return moments;
}

/// sum_k weight_k score_k
std::vector<double> weighted(const std::vector<const Outcome*>& group, const std::vector<double>& weight) {
  std::vector<double> g(group[0]->score.size());
  for (std::size_t k = 0; k < group.size(); ++k)
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += weight[k] * group[k]->score[i];
  return g;
}

/// The equation of GRPO's paper: (f - mean) / std over K. `freedom`: K - 1, or K.
std::vector<double> grpo(const std::vector<const Outcome*>& group, double freedom, double epsilon) {
  const auto K = static_cast<double>(group.size());
  double mean = 0, variance = 0;
  for (const auto* outcome : group) mean += outcome->f / K;
  for (const auto* outcome : group) variance += (outcome->f - mean) * (outcome->f - mean) / freedom;
  std::vector<double> weight;
  for (const auto* outcome : group) weight.push_back((outcome->f - mean) / (std::sqrt(variance) + epsilon) / K);
  return weighted(group, weight);
}

void check(const std::string& spec, const Model<double>& model, const Moments& expected) {
  const auto estimator = estimator_of(spec, model);
  const std::vector<std::vector<double>> zero(1, std::vector<double>(expected.mean.size()));
  const auto moments = exact_moments(*estimator, model, one_example(), zero, 1e6);
  CHECK(largest_difference(moments.mean, expected.mean) < 1e-12);
  CHECK(moments.trace == doctest::Approx(expected.trace).epsilon(1e-9));
}

TEST_CASE("groups: the moments of group_normalised are those of the papers' equations over every group") {
  int visited = 0;
  for (const auto* toy : {three_bits, linear_bits, table_bits, one_bit})
    for (int samples : {2, 3}) {
      CAPTURE(toy);
      CAPTURE(samples);
      const auto model = model_of(toy);
      check(fmt::format("group_normalised[samples={},epsilon=0.01]", samples), *model,
            over_groups(*model, samples, [&](const auto& group) { return grpo(group, samples - 1, 0.01); }));
      ++visited;
    }
  CHECK(visited == 8);
}

TEST_CASE("groups: division by the std of the whole group is a different estimator, which is distinguished") {
  const auto model = model_of(table_bits);
  const auto moments = exact_moments(*estimator_of("group_normalised[samples=2,epsilon=0.01]", *model), *model, one_example(),
                                     {std::vector<double>(2)}, 1e6);
  const auto other = over_groups(*model, 2, [&](const auto& group) { return grpo(group, 2, 0.01); });
  CHECK(largest_difference(moments.mean, other.mean) > 1e-2);
}

TEST_CASE("groups: without its scale GRPO's estimate is (K - 1) / K of leave-one-out, draw by draw") {
  for (const auto* toy : {three_bits, table_of_trits})
    for (int samples : {2, 5}) {
      const auto model = model_of(toy);
      const double K = samples;
      const auto loo = estimator_of(fmt::format("rloo[samples={}]", samples), *model);
      const auto dr = estimator_of(fmt::format("group_normalised[scale=none,samples={}]", samples), *model);
      double size = 0;
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        auto expected = gradient_of(*loo, *model, one_example(), Key(seed));
        for (double& g : expected) g *= (K - 1) / K;
        size = std::max(size, largest(expected));
        CHECK(largest_difference(gradient_of(*dr, *model, one_example(), Key(seed)), expected) < 1e-14);
      }
      CHECK(size > 0.01);
    }
}

TEST_CASE("groups: the moments of maxrl are those of its equation over every group") {
  for (const auto* toy : {three_bits, linear_bits, table_bits, one_bit})
    for (int samples : {2, 3}) {
      CAPTURE(toy);
      CAPTURE(samples);
      const auto model = model_of(toy);
      check(fmt::format("maxrl[samples={}]", samples), *model, over_groups(*model, samples, [&](const auto& group) {
              double mean = 0;
              for (const auto* outcome : group) mean += std::exp(-outcome->f) / samples;
              std::vector<double> weight;
              for (const auto* outcome : group) weight.push_back(-(std::exp(-outcome->f) - mean) / mean / samples);
              return weighted(group, weight);
            }));
    }
}

/// Three options; the first is right: losses 0 and 700, rewards 1 and 0.
class RightOrWrong final : public Model<double> {
 public:
  RightOrWrong() {
    logits_ = &this->parameters_.add("logits", {1, 3});
    logits_->value.storage() = {-0.4, 0.5, 0.2};
  }
  const Structure& structure() const override { return structure_; }
  void run(const Batch&, Episode<double>& episode) const override {
    auto& tape = episode.tape();
    const auto choice =
        episode.choose({"answer", episode.root(), categorical(tape.parameter(*logits_), {3}), tape.constant(1, 1, 1.0)});
    auto loss = tape.constant(choice.rows->size(), 1);
    for (std::size_t r = 0; r < choice.rows->size(); ++r) tape.mutable_value(loss).data[r] = choice.option()[r] == 0 ? 0 : 700;
    episode.cost(choice.rows, loss);
  }

 private:
  Structure structure_{.sites = {{.name = "answer", .options = 3, .state_width = 1, .scope = DependenceScope::own_costs}}};
  Parameter<double>* logits_;
};

TEST_CASE("groups: with right and wrong answers maxrl has the gradient of the first K - 1 terms of log p") {
  const RightOrWrong model;
  const double e0 = std::exp(-0.4), all = e0 + std::exp(0.5) + std::exp(0.2), p = e0 / all;
  for (int samples : {2, 3, 5, 9}) {
    const auto mean = mean_of(fmt::format("maxrl[samples={}]", samples), model);
    const double factor = -(1 - std::pow(1 - p, samples - 1));  // -d/dlogits of the terms: times grad log p = e_0 - p
    CHECK(mean[0] == doctest::Approx(factor * (1 - p)).epsilon(1e-12));
    CHECK(mean[1] == doctest::Approx(factor * -std::exp(0.5) / all).epsilon(1e-12));
    CHECK(mean[2] == doctest::Approx(factor * -std::exp(0.2) / all).epsilon(1e-12));
    CHECK(mean[0] != doctest::Approx(-(1 - std::pow(1 - p, samples)) * (1 - p)).epsilon(1e-3));  // not the first K
  }
}

}  // namespace
}  // namespace hardgrad::testing::groups_test
