// Local DisARM: against its equations summed over every set of antithetic pairs, and compared with related estimators.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::local_disarm_test {
using namespace measurement;
namespace {

using verification::Recurrent;

/// A pair of outcomes is one of 16.
struct Pairs : TabledBits {
  std::array<double, 2> q = posterior;
  Pairs() : TabledBits({0.9, -1.7}) {}
  static int bit(int z, int i) { return i == 0 ? z / 2 : z % 2; }
  static double p(double phi) { return 1 / (1 + std::exp(-phi)); }
  double weight(int z) const {
    double log_w = -f[z];
    for (int i = 0; i < 2; ++i) log_w += std::log(bit(z, i) ? p(prior[i]) / p(q[i]) : p(-prior[i]) / p(-q[i]));
    return std::exp(log_w);
  }
  double of_pair(int b, int c) const {
    double product = 1;
    for (int i = 0; i < 2; ++i) {
      const double one = p(q[i]), differ = std::min(one, 1 - one);
      product *= bit(b, i) != bit(c, i) ? differ : bit(b, i) == (one > 0.5) ? std::abs(2 * one - 1) : 0;
    }
    return product;
  }
  static double bound(const std::vector<double>& w) {
    double sum = 0;
    for (double x : w) sum += x;
    return -std::log(sum / static_cast<double>(w.size()));
  }
  static std::vector<double> with(std::vector<double> w, int k, double other) {
    w[k] = other;
    return w;
  }
  /// The estimate at the posterior's logits from K pairs; from `both` halves, or twice from the first.
  std::array<double, 2> estimate(const std::vector<int>& b, const std::vector<int>& c, bool both) const {
    const int K = static_cast<int>(b.size());
    std::vector<double> w, v;
    for (int k = 0; k < K; ++k) {
      w.push_back(weight(b[k]));
      v.push_back(weight(c[k]));
    }
    std::array<double, 2> g{};
    double sum_w = 0, sum_v = 0;
    for (int k = 0; k < K; ++k) {
      sum_w += w[k];
      sum_v += v[k];
    }
    for (int k = 0; k < K; ++k) {
      const double first = bound(w) - bound(with(w, k, v[k])), second = bound(with(v, k, w[k])) - bound(v);
      for (int i = 0; i < 2; ++i) {
        g[i] += (both ? (first + second) / 2 : first) / 2 * (bit(b[k], i) - bit(c[k], i)) * p(std::abs(q[i]));
        g[i] += (w[k] / sum_w * (bit(b[k], i) - p(q[i])) + v[k] / sum_v * (bit(c[k], i) - p(q[i]))) / 2;
      }
    }
    return g;
  }
  /// Means and variances at the posterior's logits.
  std::array<std::array<double, 2>, 2> moments(int samples, bool both) const {
    std::array<std::array<double, 2>, 2> m{};
    for (int code = 0; code < std::pow(16, samples); ++code) {
      std::vector<int> b, c;
      double weight = 1;
      for (int k = 0, rest = code; k < samples; ++k, rest /= 16) {
        b.push_back(rest % 4);
        c.push_back(rest % 16 / 4);
        weight *= of_pair(b.back(), c.back());
      }
      if (weight == 0) continue;
      const auto g = estimate(b, c, both);
      for (int i = 0; i < 2; ++i) {
        m[0][i] += weight * g[i];
        m[1][i] += weight * g[i] * g[i];
      }
    }
    for (int i = 0; i < 2; ++i) m[1][i] -= m[0][i] * m[0][i];
    return m;
  }
};

TEST_CASE("local_disarm: mean and variance at the posterior are those of the paper's equations over every set of pairs") {
  const Pairs pairs;
  for (int samples : {1, 2, 3}) {
    CAPTURE(samples);
    const auto estimator = estimator_of(fmt::format("local_disarm[samples={}]", samples), *pairs.model);
    const auto truth = exact_reference(estimator->target(), *pairs.model, one_example(), 1e6);
    const auto moments = exact_moments(*estimator, *pairs.model, one_example(), truth.of_example, 1e6);
    const auto expected = pairs.moments(samples, true), of_first = pairs.moments(samples, false);
    for (int i = 0; i < 2; ++i) {
      CHECK(moments.mean[2 + i] == doctest::Approx(expected[0][i]).epsilon(1e-12));
      CHECK(moments.variances[2 + i] == doctest::Approx(expected[1][i]).epsilon(1e-10));
      CHECK(of_first[0][i] == doctest::Approx(expected[0][i]).epsilon(1e-12));  // half of it is unbiased, too, but noisier
      if (samples > 1) CHECK(of_first[1][i] > expected[1][i]);
    }
  }
}

TEST_CASE("local_disarm: the mean is the bound's gradient, on bits of every kind") {
  for (int columns : {1, 2}) {
    const Recurrent<double> model(false, Key(5), 2, 0, columns);
    for (const auto* spec : {"local_disarm[samples=1]", "local_disarm"}) {
      CAPTURE(columns);
      CAPTURE(spec);
      const auto batch = columns == 1 ? Recurrent<double>::batch(2) : Recurrent<double>::batch(2).select({2});
      CHECK(bias_of(spec, model, batch) < 1e-10);
    }
  }
  const Recurrent<double> feeding(true, Key(5), 2);
  CHECK_THROWS_WITH_AS(estimator_of("local_disarm", feeding), doctest::Contains("choices feed later ones"), UsageError);
}

TEST_CASE("local_disarm: for the same bound it has less variance than vimco, at equal rows") {
  const Pairs pairs;
  const auto& model = *pairs.model;
  const double of_vimco = variance_of("vimco[samples=2]", model) / 2;  // the mean of two
  CHECK(variance_of("local_disarm[samples=2]", model) < of_vimco);
}

}  // namespace
}  // namespace hardgrad::testing::local_disarm_test
