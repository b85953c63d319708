// Statistics of replicates against the plain formulas and against known truth.
#include "experiments/measurement/statistics.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/random/randomness.hpp"

namespace hardgrad {
namespace {

/// Replicates of a normal vector with the given mean and deviations.
struct Draws {
  std::vector<std::vector<double>> g;
  Draws(int count, const std::vector<double>& mean, const std::vector<double>& deviation, Key key) {
    KeyedRandomness random(key);
    for (std::uint32_t m = 0; m < static_cast<std::uint32_t>(count); ++m) {
      g.emplace_back();
      for (std::uint32_t i = 0; i < mean.size(); ++i)
        g.back().push_back(mean[i] + deviation[i] * random.normal({.replica = m, .index = i}));
    }
  }
  Replicates statistics(const std::vector<double>& reference, int directions = 0) const {
    Replicates r(reference, directions, static_cast<int>(g.size()));
    for (int b = 0; b < r.blocks(); ++b)
      for (int m = r.range(b)[0]; m < r.range(b)[1]; ++m) r.add(b, g[m]);
    r.finish();
    return r;
  }
};

TEST_CASE("blocks cover all replicates once") {
  for (int count : {2, 31, 32, 33, 257}) {
    Replicates r({0}, 0, count);
    int next = 0;
    for (int b = 0; b < r.blocks(); ++b) {
      CHECK(r.range(b)[0] == next);
      next = r.range(b)[1];
    }
    CHECK(next == count);
  }
}

TEST_CASE("mean, variance and squared bias are the plain formulas, whatever the reference") {
  const Draws draws(50, {1, -2, 0.5}, {0.3, 1, 0}, Key(1));
  double mean[3] = {}, variance = 0;
  for (const auto& g : draws.g)
    for (int i = 0; i < 3; ++i) mean[i] += g[i] / 50;
  for (const auto& g : draws.g)
    for (int i = 0; i < 3; ++i) variance += (g[i] - mean[i]) * (g[i] - mean[i]) / 49;
  const std::vector<double> truth = {1.1, -2, 0.5};
  double bias = -variance / 50;
  for (int i = 0; i < 3; ++i) bias += (mean[i] - truth[i]) * (mean[i] - truth[i]);
  for (const auto& reference : {truth, std::vector<double>{1000, 1000, 1000}}) {
    const auto r = draws.statistics(reference);
    CHECK(r.variance() == doctest::Approx(variance).epsilon(1e-7));
    CHECK(r.squared_bias(truth) == doctest::Approx(bias).epsilon(1e-6));
    CHECK(r.mean()[1] == doctest::Approx(mean[1]).epsilon(1e-12));
    CHECK(r.variances()[2] == doctest::Approx(0));
  }
}

TEST_CASE("intervals at 95% cover the truth about 95% of the time") {
  int variance = 0, bias = 0;
  const int runs = 300;
  for (int k = 0; k < runs; ++k) {
    const Draws draws(128, {0.5, 0, 0}, {1, 0.5, 0.5}, Key(2) / static_cast<std::uint64_t>(k));
    const auto r = draws.statistics({0, 0, 0});
    const auto v = r.variance_interval(0.95), b = r.squared_bias_interval(0.95);
    variance += v[0] <= 1.5 && 1.5 <= v[1];
    bias += b[0] <= 0.25 && 0.25 <= b[1];
  }
  for (int covered : {variance, bias}) {
    CHECK(covered > 0.90 * runs);
    CHECK(covered < 0.99 * runs);
  }
}

TEST_CASE("the bias test keeps its level without bias and finds a bias of one standard error times five") {
  int rejected = 0, found = 0;
  const int runs = 400;
  for (int k = 0; k < runs; ++k) {
    const Draws fair(64, {0, 0}, {1, 1}, Key(3) / static_cast<std::uint64_t>(k));
    rejected += fair.statistics({0, 0}, 2).bias_p_value(1e-9) < 0.05;
    const Draws biased(64, {5.0 / 8, 0}, {1, 1}, Key(4) / static_cast<std::uint64_t>(k));
    found += biased.statistics({0, 0}, 2).bias_p_value(1e-9) < 0.05;
  }
  CHECK(rejected < 0.05 * runs + 5 * std::sqrt(0.05 * 0.95 * runs));
  CHECK(rejected > 0);
  CHECK(found > 0.95 * runs);
}

TEST_CASE("probes are orthonormal, and see a deviation's length on average") {
  for (auto [size, wanted] : {std::pair{3, 8}, {8, 8}, {100, 8}, {129, 5}, {200, 1}, {5, 0}}) {
    const Probes probes(size, wanted, Key(6));
    const int K = std::min(size, wanted);
    REQUIRE(probes.count() == K);
    std::vector<std::vector<double>> direction(K, std::vector<double>(size));  // from unit vectors
    for (int i = 0; i < size; ++i) {
      std::vector<double> unit(size);
      unit[i] = 1;
      const auto along = probes(unit);
      for (int k = 0; k < K; ++k) direction[k][i] = along[k];
    }
    for (int k = 0; k < K; ++k)
      for (int l = 0; l < K; ++l) {
        double dot = 0;
        for (int i = 0; i < size; ++i) dot += direction[k][i] * direction[l][i];
        CHECK(dot == doctest::Approx(k == l));
      }
  }
  const std::vector<double> ones(64, 1);
  double seen = 0;
  for (std::uint64_t key = 0; key < 500; ++key)
    for (double along : Probes(64, 4, Key(8) / key)(ones)) seen += along * along / 2000;
  CHECK(seen == doctest::Approx(1).epsilon(0.15));  // |b|^2 / P, within about five standard errors
}

TEST_CASE("without noise a deviation is a bias, and rounding is none") {
  const Draws exact(4, {1, 1}, {0, 0}, Key(5));
  CHECK(exact.statistics({1, 1}, 0).bias_p_value(1e-9) == 1);
  CHECK(exact.statistics({1 + 1e-12, 1}, 0).bias_p_value(1e-9) == 1);
  CHECK(exact.statistics({1.1, 1}, 0).bias_p_value(1e-9) == 0);
}

}  // namespace
}  // namespace hardgrad
