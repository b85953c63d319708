// Statistics of replicates against the plain formulas and against known truth.
#include "experiments/measurement/replicate_statistics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/random/randomness.hpp"

namespace hardgrad::testing::statistics_test {
using namespace measurement;
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
  ReplicateStatistics statistics(const std::vector<double>& reference, int directions = 0) const {
    ReplicateSums sums(reference, directions, static_cast<int>(g.size()));
    for (int b = 0; b < sums.blocks(); ++b)
      for (int m = sums.range(b)[0]; m < sums.range(b)[1]; ++m) sums.add(b, g[m]);
    return ReplicateStatistics(std::move(sums));
  }
};

TEST_CASE("blocks contain every replicate exactly once") {
  for (int count : {2, 31, 32, 33, 257}) {
    ReplicateSums r({0}, 0, count);
    int next = 0;
    for (int b = 0; b < r.blocks(); ++b) {
      CHECK(r.range(b)[0] == next);
      next = r.range(b)[1];
    }
    CHECK(next == count);
  }
}

TEST_CASE("mean, variance and squared bias equal the plain formulas, for any reference") {
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
    CHECK(r.distance(truth).unbiased() == doctest::Approx(bias).epsilon(1e-6));
    CHECK(r.mean()[1] == doctest::Approx(mean[1]).epsilon(1e-12));
    CHECK(r.variances()[2] == doctest::Approx(0));
  }
}

/// Noise of one replicate, with mean zero and the given variances.
struct Noise {
  const char* name;
  int size;
  std::function<double(KeyedRandomness&, Draw)> draw;
  double variance;  // of each entry
};

double one_of_two(KeyedRandomness& random, Draw where) { return random.uniform(where) < 0.6 ? 0.4 : -0.6; }
double normal(KeyedRandomness& random, Draw where) { return random.normal(where); }

/// The coverage of the intervals of the bias (`bias` standard errors long) and of the variance.
struct Coverage {
  int bias = 0, variance = 0;
  std::vector<double> p_values;
  double lowest = 0;
};

Coverage coverage(const Noise& noise, int replicates, double standard_errors, int runs, Key key) {
  const double step = standard_errors * std::sqrt(noise.variance / replicates);
  Coverage result;
  for (int run = 0; run < runs; ++run) {
    KeyedRandomness random(key / static_cast<std::uint64_t>(run));
    ReplicateSums sums(std::vector<double>(noise.size), 0, replicates);
    std::vector<double> g(noise.size);
    for (int b = 0; b < sums.blocks(); ++b)
      for (int m = sums.range(b)[0]; m < sums.range(b)[1]; ++m) {
        for (int i = 0; i < noise.size; ++i)
          g[i] = noise.draw(random, {.replica = static_cast<std::uint32_t>(m), .index = static_cast<std::uint32_t>(i)}) +
                 (i == 0 ? step : 0);
        sums.add(b, g);
      }
    const ReplicateStatistics r(std::move(sums));
    const auto bias = r.distance(r.reference()).interval(0.95), variance = r.variance_interval(0.95);
    const double true_variance = noise.variance * noise.size;
    result.bias += bias[0] <= step * step && step * step <= bias[1];
    result.variance += variance[0] <= true_variance && true_variance <= variance[1];
    result.lowest = std::min(result.lowest, bias[0]);
    result.p_values.push_back(r.bias_p_value(0));
    CHECK((bias[0] > 0) == (result.p_values.back() < 0.05));  // the interval and the test agree
  }
  return result;
}

/// The largest distance of these numbers' distribution from the uniform one, times the root of their count.
double kolmogorov(std::vector<double> p) {
  std::sort(p.begin(), p.end());
  const double n = static_cast<double>(p.size());
  double most = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    most = std::max({most, std::abs(p[i] - static_cast<double>(i) / n), std::abs(p[i] - static_cast<double>(i + 1) / n)});
  return most * std::sqrt(n);
}

TEST_CASE("intervals of bias and variance contain the truth at their level, for few and many parameters and replicates" *
          doctest::test_suite("long")) {
  int visited = 0;
  std::uint64_t place = 0;
  for (const auto& noise :
       {Noise{"one of two", 1, one_of_two, 0.24}, Noise{"normal", 1, normal, 1}, Noise{"normal", 2, normal, 1},
        Noise{"one of two", 10, one_of_two, 0.24}, Noise{"normal", 1000, normal, 1}})
    for (int replicates : {32, 400, 5000}) {
      if (noise.size * replicates > 50000) continue;  // dear
      for (double standard_errors : {0.0, 1.5, 6.0}) {
        CAPTURE(noise.name);
        CAPTURE(noise.size);
        CAPTURE(replicates);
        CAPTURE(standard_errors);
        const int runs = noise.size * replicates > 20000 ? 60 : 120;
        const auto c = coverage(noise, replicates, standard_errors, runs, Key(2) / place++);
        const double slack = 3.5 * std::sqrt(0.05 * 0.95 * runs);  // standard errors of the count, at 95%
        CHECK(c.bias > 0.95 * runs - slack);
        CHECK(c.variance > 0.95 * runs - slack);
        CHECK(c.bias < runs);  // the interval is not always infinite
        CHECK(c.lowest == 0);  // no squared bias is below zero
        ++visited;
      }
    }
  CHECK(visited == 3 * 13);
}

TEST_CASE("the plain p-value is uniform without bias") {
  for (const auto& noise :
       {Noise{"normal", 1, normal, 1}, Noise{"normal", 3, normal, 1}, Noise{"one of two", 10, one_of_two, 0.24}})
    CHECK(kolmogorov(coverage(noise, 100, 0, 500, Key(21)).p_values) < 1.63);  // 1% of samples lie beyond
}

TEST_CASE("an interval's ends are those of Student's t test if there is one parameter") {
  // d = 3, standard error 1: t_{0.975}(24) = 2.0639 far from zero, where both sides count equally.
  const auto far = SquaredLength(30 * 30, {1, 1, 1, 24, 1}).interval(0.95);
  CHECK(std::sqrt(far[0]) == doctest::Approx(30 - 2.0639).epsilon(1e-4));
  CHECK(std::sqrt(far[1]) == doctest::Approx(30 + 2.0639).epsilon(1e-4));
  CHECK(SquaredLength(0, {0, 0, 0, 24, 3}).p_value() == 1);  // without noise
  CHECK(SquaredLength(4, {0, 0, 0, 24, 3}).p_value() == 0);
  CHECK(SquaredLength(2.0639 * 2.0639, {1, 1, 1, 24, 1}).p_value() == doctest::Approx(0.05).epsilon(1e-4));
  // Equal variances in four directions: 4 F(4, 4 24); its 95% point is 2.4663.
  CHECK(SquaredLength(2.4663 * 4, {4, 0.25, 1, 24, 4}).p_value() == doctest::Approx(0.05).epsilon(0.02));
}

TEST_CASE("a long run's noise widens the interval against it") {
  int covered = 0;
  const int runs = 300;
  std::vector<double> p_values;
  for (std::uint64_t k = 0; k < runs; ++k) {
    const Draws long_run(100, {0, 1}, {1, 0.5}, Key(22) / k), draws(100, {0.2, 1}, {1, 1}, Key(23) / k);
    const auto reference = long_run.statistics({0, 0});
    const auto bias = draws.statistics(reference.mean()).distance(reference.mean(), &reference).interval(0.95);
    covered += bias[0] <= 0.04 && 0.04 <= bias[1];
    const Draws unbiased(100, {0, 1}, {1, 1}, Key(24) / k);
    p_values.push_back(unbiased.statistics(reference.mean()).distance(reference.mean(), &reference).p_value());
  }
  CHECK(kolmogorov(p_values) < 1.63);  // uniform: 1% of samples lie beyond
  CHECK(covered > 0.95 * runs - 3.5 * std::sqrt(0.05 * 0.95 * runs));
  CHECK(covered < runs);
}

TEST_CASE("an error of the reference does not count as a bias of the estimate") {
  int rejected = 0, rejected_without = 0, found = 0;
  const int runs = 200;
  for (std::uint64_t k = 0; k < runs; ++k) {
    const Draws draws(100, {0.5, 1}, {1, 1}, Key(26) / k);
    const auto r = draws.statistics({0, 1});
    rejected += r.bias_p_value(0, 0.5) < 0.05;
    rejected_without += r.bias_p_value(0) < 0.05;
    found += r.bias_p_value(0, 0.05) < 0.05;
  }
  CHECK(rejected < 0.05 * runs + 3.5 * std::sqrt(0.05 * 0.95 * runs));
  CHECK(rejected_without > 0.9 * runs);
  CHECK(found > 0.9 * runs);
}

TEST_CASE("the mean cosine's interval contains it, also if a cosine is only a sign, and stays within [-1, 1]") {
  for (double chance : {0.6, 0.98}) {  // of a positive estimate
    int covered = 0;
    const int runs = 300;
    for (std::uint64_t k = 0; k < runs; ++k) {
      KeyedRandomness random(Key(24) / k);
      ReplicateSums sums({1}, 0, 64);
      for (int b = 0; b < sums.blocks(); ++b)
        for (int m = sums.range(b)[0]; m < sums.range(b)[1]; ++m) {
          const double g[] = {random.uniform({.replica = static_cast<std::uint32_t>(m)}) < chance ? 1.0 + 0.01 * m : -1.0};
          sums.add(b, g);
        }
      const auto interval = ReplicateStatistics(std::move(sums)).cosine_interval(0.95);
      covered += interval[0] <= 2 * chance - 1 && 2 * chance - 1 <= interval[1];
      CHECK(interval[0] >= -1);
      CHECK(interval[1] <= 1);
    }
    CHECK(covered > 0.95 * runs - 3.5 * std::sqrt(0.05 * 0.95 * runs));
    CHECK(covered < runs);
  }
}

TEST_CASE("the bias test keeps its level without bias and finds a bias of one standard error times five") {
  int rejected = 0, found = 0;
  const int runs = 400;
  for (int k = 0; k < runs; ++k) {
    const Draws fair(64, {0, 0}, {1, 1}, Key(3) / static_cast<std::uint64_t>(k));
    rejected += fair.statistics({0, 0}, 2).corrected_bias_p_value(1e-9) < 0.05;
    const Draws biased(64, {5.0 / 8, 0}, {1, 1}, Key(4) / static_cast<std::uint64_t>(k));
    found += biased.statistics({0, 0}, 2).corrected_bias_p_value(1e-9) < 0.05;
  }
  CHECK(rejected < 0.05 * runs + 5 * std::sqrt(0.05 * 0.95 * runs));
  CHECK(rejected > 0);
  CHECK(found > 0.95 * runs);
}

std::vector<double> along(const Probes& probes, const std::vector<double>& vector) {
  std::vector<double> sums(probes.lanes());
  probes.add(0, vector, sums);
  return probes.along(sums);
}

TEST_CASE("probes are orthonormal, and measure a deviation's length on average") {
  for (auto [size, wanted] : {std::pair{3, 8}, {8, 8}, {100, 8}, {129, 5}, {200, 1}, {5, 0}}) {
    const Probes probes(size, wanted, Key(6));
    const int K = std::min(size, wanted);
    REQUIRE(probes.count() == K);
    std::vector<std::vector<double>> direction(K, std::vector<double>(size));  // from unit vectors
    for (int i = 0; i < size; ++i) {
      std::vector<double> unit(size);
      unit[i] = 1;
      const auto each = along(probes, unit);
      for (int k = 0; k < K; ++k) direction[k][i] = each[k];
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
    for (double each : along(Probes(64, 4, Key(8) / key), ones)) seen += each * each / 2000;
  CHECK(seen == doctest::Approx(1).epsilon(0.15));  // |b|^2 / P, within about five standard errors
}

TEST_CASE("gradients of any size have the same p-values, effective samples and relative intervals") {
  const std::vector<double> mean{1, -2, 0.5}, deviation{0.3, 1, 0.1}, off{1.1, -2.1, 0.5};
  const auto scaled = [](std::vector<double> x, int exponent) {
    for (double& v : x) v = std::ldexp(v, exponent);
    return x;
  };
  const auto statistics = [&](int exponent, Key key) {
    auto draws = Draws(200, mean, deviation, key);
    for (auto& g : draws.g) g = scaled(g, exponent);
    return draws.statistics(scaled(off, exponent));
  };
  int sizes = 0;
  const auto one = statistics(0, Key(6)), other = statistics(0, Key(7));
  for (int exponent : {-500, -270, -140, -40, 140, 270, 490}) {
    const auto r = statistics(exponent, Key(6)), noisy = statistics(exponent, Key(7));
    const auto back = [&](double square) { return doctest::Approx(std::ldexp(square, -2 * exponent)).epsilon(1e-9); };
    CHECK(one.variance() == back(r.variance()));
    CHECK(one.effective_sample_size() == doctest::Approx(r.effective_sample_size()).epsilon(1e-9));
    CHECK(one.bias_p_value(0) == doctest::Approx(r.bias_p_value(0)).epsilon(1e-9));
    CHECK(one.bias_p_value(0, 0.1) == doctest::Approx(r.bias_p_value(0, std::ldexp(0.1, exponent))).epsilon(1e-9));
    for (int side : {0, 1}) {
      CHECK(one.variance_interval(0.95)[side] == back(r.variance_interval(0.95)[side]));
      CHECK(one.distance(off).interval(0.95)[side] == back(r.distance(scaled(off, exponent)).interval(0.95)[side]));
      CHECK(one.distance(mean, &other).interval(0.95)[side] ==
            back(r.distance(scaled(mean, exponent), &noisy).interval(0.95)[side]));
    }
    ++sizes;
  }
  CHECK(sizes == 7);
}

TEST_CASE("a rare term that was not drawn is not a bias along its direction") {
  // Entry 0 deviates by 1 in a hundredth of the draws; entry 1 would in a thousandth, but does in none of these.
  ReplicateSums without({0, 0}, 2, 256), with({0, 0}, 2, 256);
  for (int b = 0; b < without.blocks(); ++b) {
    for (int m = without.range(b)[0]; m < without.range(b)[1]; ++m) {
      const double noise = 1e-5 * (m % 7 - 3), rare = m % 100 == 50 ? 0.99 : -0.01;
      without.add(b, std::vector<double>{rare, -0.001 + noise});
      with.add(b, std::vector<double>{rare, 0.5 + noise});
    }
    without.complete(b);
    with.complete(b);
  }
  const ReplicateStatistics missed(std::move(without)), biased(std::move(with));
  CHECK(missed.bias_p_value(1e-9) > 0.05);
  CHECK(missed.corrected_bias_p_value(1e-9) > 0.05);
  CHECK(biased.corrected_bias_p_value(1e-9) < 1e-12);
}

TEST_CASE("without noise a deviation is a bias, but rounding is not") {
  const Draws exact(4, {1, 1}, {0, 0}, Key(5));
  int places = 0;
  for (const auto& [at, p] : {std::pair{1.0, 1}, {1 + 1e-12, 1}, {1.1, 0}}) {
    const auto replicates = exact.statistics({at, 1}, 0);
    CHECK(replicates.bias_p_value(1e-9) == p);
    CHECK(replicates.corrected_bias_p_value(1e-9) == p);
    CHECK(replicates.bias_p_value(1e-9, 0.2) == 1);  // the reference may have an error of that size
    ++places;
  }
  CHECK(places == 3);
}

}  // namespace
}  // namespace hardgrad::testing::statistics_test
