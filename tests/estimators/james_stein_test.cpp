// james_stein, which couples examples: against sums over every outcome of whole batches, from the paper's equations.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/outcomes.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::james_stein_test {
using namespace measurement;
namespace {

using verification::Recurrent;
using Losses = std::vector<std::vector<double>>;  // [B][K]

double mean(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()); }

/// The baseline of sample k of example b.
double baseline(const Losses& f, std::size_t b, std::size_t k) {
  const auto B = static_cast<double>(f.size()), K = static_cast<double>(f[b].size());
  const double own = (mean(f[b]) * K - f[b][k]) / (K - 1);
  double m = 0, v = 0, s = 0;
  for (std::size_t c = 0; c < f.size(); ++c)
    if (c != b) m += mean(f[c]) / (B - 1);
  for (std::size_t c = 0; c < f.size(); ++c) {
    if (c == b) continue;
    for (double x : f[c]) v += (x - mean(f[c])) * (x - mean(f[c])) / (K - 1) / K / (B - 1);
    s += (mean(f[c]) - m) * (mean(f[c]) - m) / (B - 1);
  }
  const double lambda = v + s > 1e-20 ? v / (v + s) : 0;
  return (1 - lambda) * own + lambda * m;
}

/// Exact mean and trace over all outcomes of `examples` copies of a toy whose loss has no parameters.
Moments over_batches(const Model<double>& model, std::size_t examples, std::size_t samples) {
  const auto all = all_outcomes(model, one_example());
  const std::size_t size = model.parameters().size(), draws = examples * samples;
  Moments moments;
  moments.mean.resize(size);
  double squares = 0;
  for (std::size_t code = 0, codes = std::lround(std::pow(all.size(), draws)); code < codes; ++code) {
    Losses f(examples, std::vector<double>(samples));
    std::vector<const Outcome*> drawn(draws);
    double p = 1;
    for (std::size_t i = 0, rest = code; i < draws; ++i, rest /= all.size()) {
      drawn[i] = &all[rest % all.size()];
      p *= drawn[i]->p;
      f[i / samples][i % samples] = drawn[i]->f;
    }
    std::vector<double> g(size);
    for (std::size_t i = 0; i < draws; ++i)
      for (std::size_t j = 0; j < size; ++j)
        g[j] += (drawn[i]->f - baseline(f, i / samples, i % samples)) * drawn[i]->score[j] / static_cast<double>(draws);
    for (std::size_t j = 0; j < size; ++j) {
      moments.mean[j] += p * g[j];
      squares += p * g[j] * g[j];
    }
  }
  moments.trace = squares;
  for (double m : moments.mean) moments.trace -= m * m;
  return moments;
}

TEST_CASE("james_stein: mean and variance are those of the paper's equations over every outcome of a batch") {
  int visited = 0;
  for (const auto& [toy, examples, samples] : {std::tuple{one_bit, 2, 2},
                                               {one_bit, 3, 2},
                                               {one_bit, 4, 3},
                                               {table_bits, 2, 2},
                                               {table_bits, 3, 2},
                                               {three_bits, 2, 2}}) {
    CAPTURE(toy);
    CAPTURE(examples);
    const auto model = model_of(toy);
    const auto expected = over_batches(*model, examples, samples);
    const auto estimator = estimator_of(fmt::format("james_stein[samples={}]", samples), *model);
    const std::vector<std::vector<double>> zero(examples, std::vector<double>(expected.mean.size()));
    const auto moments = exact_moments(*estimator, *model, many(examples), zero, 1e6);
    CHECK(largest_difference(moments.mean, expected.mean) < 1e-12);
    CHECK(moments.trace == doctest::Approx(expected.trace).epsilon(1e-9));
    CHECK(moments.cost.rows == doctest::Approx(examples * samples));
    ++visited;
  }
  CHECK(visited == 6);
}

TEST_CASE("james_stein: unbiased if examples differ and choices feed later ones, a single example has leave-one-out") {
  int visited = 0;
  for (bool feeding : {true, false})
    for (const auto* settings : {"samples=2", "samples=3", "samples=2,reward_to_go=true", "samples=2,target=elbo",
                                 "samples=2,target=elbo,kl=sampled"}) {
      CAPTURE(settings);
      const Recurrent<double> model(feeding, Key(5), 2);
      const auto batch = Recurrent<double>::batch(2);
      const auto estimator = estimator_of(fmt::format("james_stein[{}]", settings), model);
      CHECK(bias_of(*estimator, model, batch.select({1, 2})) < 1e-10);
      const auto loo = estimator_of(fmt::format("rloo[{}]", settings), model);
      CHECK(gradient_of(*estimator, model, batch.select({1}), Key(3)) == gradient_of(*loo, model, batch.select({1}), Key(3)));
      ++visited;
    }
  CHECK(visited == 10);
}

TEST_CASE("james_stein: with its declared coupling of examples, the exact variance is that of draws") {
  const auto model = model_of(table_bits);
  const auto estimator = estimator_of("james_stein[samples=2]", *model);
  CHECK(estimator->couples_examples());
  CHECK(!estimator_of("rloo[samples=2]", *model)->couples_examples());
  const auto batch = many(6);
  const MeasureSettings how{.replicates = 20000, .estimand = Estimand::none, .level = 0.9999};
  const auto drawn = measure(Spec::parse("james_stein[samples=2]"), *estimator, *model, batch, how, Key(4));
  const auto [low, high] = drawn.intervals.at("variance");
  const auto two = many(2);
  const auto of_two = measure(Spec::parse("james_stein[samples=2]"), *estimator, *model, two, how, Key(4));
  const double together = variance_of(*estimator, *model, two);
  const auto [low_of_two, high_of_two] = of_two.intervals.at("variance");
  CHECK((together > low_of_two && together < high_of_two));
  estimator->couple_examples(false);
  const double apart = variance_of(*estimator, *model, batch);
  CHECK(!(apart > low && apart < high));
  CHECK(apart == doctest::Approx(variance_of("rloo[samples=2]", *model, batch)).epsilon(1e-9));
  CHECK(drawn.variance < 0.9 * apart);  // similar examples: their common mean is the better baseline
}

/// Shrinks towards a mean that includes the example itself.
class Knowing final : public Estimator<double> {
 public:
  Estimate<double> estimate(const Problem<double>& problem) const override {
    Sampled<double> sampled(problem, 2);
    const auto score = sampled.score(Credit::whole, [](int, std::vector<double>& f) {
      const double all = mean(f);
      for (double& x : f) x -= all;
    });
    auto surrogate = add(score, sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = 0};
  }
};

TEST_CASE("james_stein: a mean of the batch that includes the example is biased") {
  const auto model = model_of(table_bits);
  Knowing knowing;
  knowing.couple_examples(true);
  CHECK(bias_of(knowing, *model, many(2)) > 1e-3);
}

}  // namespace
}  // namespace hardgrad::testing::james_stein_test
