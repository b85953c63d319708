// VarGrad: against finite differences of its paper's loss, and compared with leave-one-out, from which it differs by one term.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::vargrad_test {
using namespace measurement;
namespace {

using verification::Recurrent;

struct TwoBits : TabledBits {
  using TabledBits::TabledBits;
  static double log_p(const std::array<double, 2>& phi, int z) {
    const auto of = [](double logit, int bit) { return -std::log1p(std::exp(bit ? -logit : logit)); };
    return of(phi[0], z / 2) + of(phi[1], z % 2);
  }
  double l(const std::array<double, 2>& q, int z) const { return f[z] + log_p(q, z) - log_p(prior, z); }

  /// Mean and mean square of the derivatives of 1/2 Var(l_1..l_K) in the posterior's logits, over all sets of K outcomes, by
  /// central differences.
  std::array<std::array<double, 2>, 2> by_differences(int samples) const {
    std::array<std::array<double, 2>, 2> moments{};
    for (int code = 0; code < std::pow(4, samples); ++code) {
      double weight = 1;
      for (int k = 0, rest = code; k < samples; ++k, rest /= 4) weight *= std::exp(log_p(posterior, rest % 4));
      const auto half_variance = [&](const std::array<double, 2>& q) {
        double sum = 0, squares = 0;
        for (int k = 0, rest = code; k < samples; ++k, rest /= 4) {
          const double x = l(q, rest % 4);
          sum += x;
          squares += x * x;
        }
        return (squares - sum * sum / samples) / (samples - 1) / 2;
      };
      for (int i = 0; i < 2; ++i) {
        auto above = posterior, below = posterior;
        above[i] += 1e-5;
        below[i] -= 1e-5;
        const double g = (half_variance(above) - half_variance(below)) / 2e-5;
        moments[0][i] += weight * g;
        moments[1][i] += weight * g * g;
      }
    }
    return moments;
  }

  Moments found(const std::string& spec) const {
    const auto estimator = estimator_of(spec, *model);
    return exact_moments(*estimator, *model, one_example(), {std::vector<double>(4)}, 1e6, true);
  }
  /// Variance at the posterior's two logits, which follow the prior's.
  double variance_of_posterior(const std::string& spec) const {
    const auto moments = found(spec);
    return moments.covariance[2 * 4 + 2] + moments.covariance[3 * 4 + 3];
  }
};

TEST_CASE("vargrad: mean and variance at the posterior are those of the paper's loss, differentiated sample by sample") {
  for (const auto q : {std::array{0.9, -0.2}, {-1.5, 0.4}})
    for (int samples : {2, 3}) {
      const TwoBits bits(q);
      const auto moments = bits.found(fmt::format("vargrad[samples={}]", samples));
      const auto expected = bits.by_differences(samples);
      for (int i = 0; i < 2; ++i) {
        CHECK(moments.mean[2 + i] == doctest::Approx(expected[0][i]).epsilon(1e-7));
        CHECK(moments.covariance[(2 + i) * 5] ==
              doctest::Approx(expected[1][i] - expected[0][i] * expected[0][i]).epsilon(1e-6));
      }
    }
}

TEST_CASE("vargrad: draw by draw it equals leave-one-out minus the mean score of the posterior") {
  const TwoBits bits({0.9, -0.2});
  const auto vargrad = estimator_of("vargrad[samples=3]", *bits.model);
  const auto loo = estimator_of("rloo[samples=3,target=elbo,kl=sampled]", *bits.model);
  double size = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Tape<double> tape;
    KeyedRandomness random{Key(seed)};
    const auto batch = one_example();
    const auto found = gradient_of(*vargrad, *bits.model, batch, Key(seed)),
               other = gradient_of(*loo, *bits.model, batch, Key(seed));
    SampleHandler<double> handler(3, random, batch.id);
    Episode<double> episode(tape, handler, 1, {.drawn_from = DrawnFrom::posterior});
    bits.model->run(batch, episode);
    tape.backward(sum(episode.log_probability(0), 1.0 / 3));
    std::vector<double> score(4);
    tape.add_gradient(bits.model->parameters(), std::span<double>(score));
    for (int i = 0; i < 4; ++i) CHECK(found[i] == doctest::Approx(other[i] - score[i]).epsilon(1e-12));
    size = std::max(size, largest(score));
  }
  CHECK(size > 0.1);
}

TEST_CASE("vargrad: at the true posterior it has no variance, while leave-one-out has") {
  // One bit: p(z | y) has the logit phi - (f(1) - f(0)).
  const auto model = model_of("bits[t=0.3,logit=0.6]", true);
  model->parameters().find("posterior.logits")->value.flat(0) = 0.6 - (0.49 - 0.09);
  const auto variance = [&](const char* spec) {
    return exact_moments(*estimator_of(spec, *model), *model, one_example(), {std::vector<double>(2)}, 1e6, true).covariance[3];
  };
  CHECK(variance("vargrad[samples=2]") < 1e-30);
  CHECK(variance("rloo[samples=2,target=elbo,kl=sampled]") > 1e-2);
}

/// vargrad with the variance of K samples over K instead of K - 1.
class Wrong final : public Estimator<double> {
 public:
  Wrong() { aim("elbo[kl=sampled]"); }

 private:
  Estimate<double> estimate(const Problem<double>& problem) const override {
    Sampled<double> sampled(problem, 2);
    const auto score = sampled.score(Credit::whole, [&](int, std::vector<double>& l) {
      const double mean = (l[0] + l[1]) / 2;
      l = {l[0] - mean - 1, l[1] - mean - 1};
    });
    return {.surrogate = add(score, sampled.path()), .episode = sampled.release()};
  }
};

TEST_CASE(
    "vargrad: the exact mean is the bound's gradient, with dependent and independent choices, and division by K is detected") {
  for (bool feeding : {false, true})
    for (const auto* spec : {"vargrad[samples=2]", "vargrad[samples=2,reward_to_go=true]"}) {
      const Recurrent<double> model(feeding);
      CHECK(bias_of(spec, model, Recurrent<double>::batch()) < 1e-10);
    }
  const TwoBits bits({0.9, -0.2});
  CHECK(bias_of("vargrad", *bits.model) < 1e-10);
  CHECK(bias_of(Wrong(), *bits.model, one_example()) > 1e-3);
}

}  // namespace
}  // namespace hardgrad::testing::vargrad_test
