// Jumps of categories: against inversion with a slightly increased logit and the same uniform number.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/estimator/coupling/coupled_estimator.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/coupling.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::jumps_test {
using namespace measurement;
namespace {

using verification::Recurrent;

/// The borders 0, F_0, F_1, .., 1 between options.
std::vector<double> borders(const std::vector<double>& logits) {
  double all = 0, sum = 0;
  for (double l : logits) all += std::exp(l);
  std::vector<double> border{0};
  for (double l : logits) border.push_back(sum += std::exp(l) / all);
  return border;
}

TEST_CASE("jumps: mean and variance equal those of draws by inversion, increasing the logits one by one") {
  for (const auto& logits : {std::vector{0.2, -1.5, 0.4, 1.0}, {2.0, -3.0, 1.0, -0.5}, {-1.0, 0.3, 0.1, 0.0}}) {
    const auto model = model_of(fmt::format("bits[options=4,t=0.3,logit={}]", fmt::join(logits, ";")));
    const auto f = [](std::size_t z) { return std::pow(static_cast<double>(z) / 3 - 0.3, 2); };
    const auto now = borders(logits);
    const double h = 1e-7;
    std::vector<double> mean(4), square(4);
    for (std::size_t l = 0; l < 4; ++l) {
      auto grown = logits;
      grown[l] += h;
      const auto then = borders(grown);
      for (std::size_t z = 0; z < 4; ++z) {
        double g = 0;  // sum over the options jumped to: the share of z's draws that jump, per h, times the change of the loss
        for (std::size_t y = 0; y < 4; ++y) {
          const double shared = std::min(now[z + 1], then[y + 1]) - std::max(now[z], then[y]);
          if (y != z && shared > 0) g += shared / (now[z + 1] - now[z]) / h * (f(y) - f(z));
        }
        mean[l] += (now[z + 1] - now[z]) * g;
        square[l] += (now[z + 1] - now[z]) * g * g;
      }
    }
    const auto moments =
        exact_moments(*estimator_of("stochastic_ad", *model), *model, one_example(), {std::vector<double>(4)}, 1e6);
    for (std::size_t l = 0; l < 4; ++l) {
      CHECK(std::abs(moments.mean[l] - mean[l]) < 1e-6);
      CHECK(std::abs(moments.variances[l] - (square[l] - mean[l] * mean[l])) < 1e-5 * square[l] + 1e-6);
    }
  }
}

const std::vector<std::string> specs = {"stochastic_ad", "stochastic_ad[target=elbo]", "stochastic_ad[target=elbo,kl=sampled]"};

TEST_CASE("jumps: the mean is the gradient, on categories of every kind and if choices feed each other") {
  for (const auto& spec : specs) {
    CAPTURE(spec);
    for (bool feeding : {false, true})
      for (int columns : {1, 2}) {
        const Recurrent<double> model(feeding, Key(5), 3, 0, columns);
        const auto batch = columns == 1 ? Recurrent<double>::batch() : Recurrent<double>::batch().select({1});
        CHECK(bias_of(spec, model, batch) < 1e-10);
      }
    for (const auto* toy : {linear_bits, table_bits, table_of_trits, "bits[options=5,function=linear,logit=0.2;-2;0.4;1;0]"}) {
      const auto model = model_of(toy, true);
      CHECK(bias_of(spec, *model) < 1e-10);
    }
  }
}

TEST_CASE("jumps: all draws of a bit's other option jump to it, and neighbours of equal cost give no noise") {
  for (double phi : {-2.0, 0.3}) {
    const auto model = model_of(fmt::format("bits[t=0.3,logit={}]", phi));
    const double p = 1 / (1 + std::exp(-phi)), f1 = 0.49, f0 = 0.09;
    // g = [b = 0] p (f(1) - f(0))
    CHECK(variance_of("stochastic_ad", *model) == doctest::Approx(p * (1 - p) * std::pow(p * (f1 - f0), 2)).epsilon(1e-12));
  }
  const auto alike = model_of("bits[t=0.5,logit=0.4]");
  CHECK(variance_of("stochastic_ad", *alike) == 0);
}

TEST_CASE("jumps: an estimator that ignores the share of jumping draws is detected") {
  const auto draw = [](Coupling& c, Randomness& random, Draw where) {
    const int z = random.categorical(c.p, where);
    c.option[0] = z;
    c.option[1] = std::max(z - 1, 0);
    c.option[2] = std::min(z + 1, static_cast<int>(c.p.size()) - 1);
  };
  const auto jumps = [](bool shares) {
    return [shares](const Coupling& c, std::span<const double> f, std::span<double> logits) {
      const auto z = static_cast<std::size_t>(c.option[0]);
      double below = 0, above = 1;
      for (std::size_t l = 0; l < z; ++l) below += c.p[l];
      for (std::size_t l = 0; l <= z; ++l) above -= c.p[l];
      for (std::size_t l = 0; l < c.p.size(); ++l) {
        if (l < z) logits[l] = c.p[l] * (1 - below) * (f[1] - f[0]) / (shares ? c.p[z] : 1);
        if (l > z) logits[l] = c.p[l] * (1 - above) * (f[2] - f[0]) / (shares ? c.p[z] : 1);
      }
    };
  };
  const Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  CHECK(bias_of(FunctionCoupling(3, draw, jumps(true), false), model, batch) < 1e-10);
  CHECK(bias_of(FunctionCoupling(3, draw, jumps(false), false), model, batch) > 1e-3);
}

}  // namespace
}  // namespace hardgrad::testing::jumps_test
