// Subsets of k options: density, marginals and entropy by enumeration of all subsets; derivatives; limits.
#include "core/autodiff/subsets.hpp"

#include <cmath>
#include <map>

#include "core/autodiff/reduce.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::subsets_test {
namespace {

/// All subsets of k of n options as sets of bits.
std::vector<unsigned> subsets(int n, int k) {
  std::vector<unsigned> all;
  for (unsigned set = 0; set < 1u << n; ++set)
    if (__builtin_popcount(set) == k) all.push_back(set);
  return all;
}

struct Enumerated {
  std::vector<double> log_p, marginals;  // of `subsets`; [n]
  double log_normaliser = 0, entropy = 0;
};

Enumerated enumerate(const std::vector<double>& x, int k) {
  const int n = static_cast<int>(x.size());
  Enumerated e;
  e.marginals.resize(n);
  const auto all = subsets(n, k);
  double most = -INFINITY, total = 0;
  for (unsigned set : all) {
    double sum = 0;
    for (int i = 0; i < n; ++i)
      if (set >> i & 1) sum += x[i];
    e.log_p.push_back(sum);
    most = std::max(most, sum);
  }
  for (double v : e.log_p) total += std::exp(v - most);
  e.log_normaliser = most + std::log(total);
  for (std::size_t s = 0; s < all.size(); ++s) {
    const double p = std::exp(e.log_p[s] -= e.log_normaliser);
    if (p > 0) e.entropy -= p * e.log_p[s];
    for (int i = 0; i < n; ++i)
      if (all[s] >> i & 1) e.marginals[i] += p;
  }
  return e;
}

std::span<const int> of(const std::vector<int>& x) { return x; }

}  // namespace

TEST_CASE("subsets: density, marginals and entropy equal sums over all subsets") {
  for (int problem = 0; problem < 200; ++problem) {
    const int n = 1 + problem % 8, k = 1 + problem / 8 % n;
    const auto x = random_matrix(1, n, 100 + problem, -30, 30);
    const auto expected = enumerate(x.storage(), k);
    Tape<double> tape;
    const auto logits = place(tape, {x})[0];
    const std::vector<int> options{n};
    CHECK(subset_normaliser(logits, of(options), k).item() == doctest::Approx(expected.log_normaliser).epsilon(1e-13));
    CHECK(std::abs(subset_entropy(logits, of(options), k).item() - expected.entropy) < 1e-12);
    const auto marginals = subset_marginals(logits, of(options), k).value();
    for (int i = 0; i < n; ++i) CHECK(marginals(0, i) == doctest::Approx(expected.marginals[i]).epsilon(1e-11).scale(1e-300));
    const auto all = subsets(n, k);
    std::vector<int> picked;
    for (unsigned set : all)
      for (int i = 0; i < n; ++i)
        if (set >> i & 1) picked.push_back(i);
    const std::vector<int> parent(all.size(), 0);
    const auto log_p = subset_log_probability(logits, of(options), k, of(parent), of(picked)).value();
    for (std::size_t s = 0; s < all.size(); ++s) CHECK(std::abs(log_p.data[s] - expected.log_p[s]) < 1e-12);
  }
}

TEST_CASE("subsets: gradients, ragged options") {
  for (const std::vector<int>& options : {std::vector<int>{5}, {5, 1, 3}, {2, 5, 4, 5, 3, 5, 5, 1, 5}})
    for (int k : {1, 2, 4})
      for (double spread : {0.3, 3.0}) {
        const auto x = random_matrix(options.size(), 5, 7, -spread, spread);
        expect_gradient([&](auto&, const auto& v) { return subset_normaliser(v[0], of(options), k); }, {x});
        expect_gradient([&](auto&, const auto& v) { return subset_marginals(v[0], of(options), k); }, {x});
        expect_gradient([&](auto&, const auto& v) { return subset_entropy(v[0], of(options), k); }, {x});
        std::vector<int> parent, picked;
        for (std::size_t r = 0; r < options.size(); ++r)
          for (int copy = 0; copy < 2; ++copy) {
            parent.push_back(static_cast<int>(r));
            for (int j = 0; j < k; ++j) picked.push_back(j < options[r] ? options[r] - 1 - j : -1);
          }
        expect_gradient(
            [&](auto&, const auto& v) { return subset_log_probability(v[0], of(options), k, of(parent), of(picked)); }, {x});
      }
}

TEST_CASE("subsets: one of n options is a softmax, all of n are certain") {
  const auto x = random_matrix(3, 6, 11, -4, 4);
  const std::vector<int> options(3, 6);
  Tape<double> tape;
  const auto logits = place(tape, {x})[0];
  const auto one = subset_marginals(logits, of(options), 1).value(), all = subset_marginals(logits, of(options), 6).value();
  for (std::size_t r = 0; r < 3; ++r) {
    double total = 0;
    for (std::size_t i = 0; i < 6; ++i) total += std::exp(x(r, i));
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(one(r, i) == doctest::Approx(std::exp(x(r, i)) / total).epsilon(1e-13));
      CHECK(all(r, i) == 1);
    }
    CHECK(subset_entropy(logits, of(options), 6).value().data[r] == 0);
  }
}

TEST_CASE("subsets: extreme logits give limits, not NaN") {
  const double inf = INFINITY;
  struct Case {
    std::vector<double> x;
    int k;
    std::vector<double> marginals;
    double entropy;
  };
  const std::vector<Case> cases = {
      {{700, -700, -700}, 2, {1, 0.5, 0.5}, std::log(2)},
      {{-700, 700, 700, 700}, 1, {0, 1. / 3, 1. / 3, 1. / 3}, std::log(3)},
      {{700, 700, -700, -700}, 2, {1, 1, 0, 0}, 0},
      {{-700, -700, -700, -700}, 2, {0.5, 0.5, 0.5, 0.5}, std::log(6)},
      {{700, -700, 0, -700}, 3, {1, 0.5, 1, 0.5}, std::log(2)},
      {{-inf, 700, -inf, -700, -700}, 2, {0, 1, 0, 0.5, 0.5}, std::log(2)},
      {{-inf, 3, -inf, -2}, 2, {0, 1, 0, 1}, 0},
      {{-inf, 3, -inf, -inf}, 2, {0, 1, 0, 0}, 0},
      {{5}, 3, {1}, 0},
  };
  for (const auto& c : cases) {
    CAPTURE(c.x);
    CAPTURE(c.k);
    Tape<double> tape;
    const std::vector<int> options{static_cast<int>(c.x.size())};
    const auto logits = tape.input({c.x.data(), 1, c.x.size()});
    const auto marginals = subset_marginals(logits, of(options), c.k);
    const auto entropy = subset_entropy(logits, of(options), c.k);
    for (std::size_t i = 0; i < c.x.size(); ++i) CHECK(std::abs(marginals.value()(0, i) - c.marginals[i]) < 1e-12);
    CHECK(std::abs(entropy.item() - c.entropy) < 1e-12);
    CHECK(std::isfinite(subset_normaliser(logits, of(options), c.k).item()));
    std::vector<double> weight(c.x.size());
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = asymmetric(i);
    tape.backward(weighted_sum(marginals, std::span<const double>(weight)));
    for (std::size_t i = 0; i < c.x.size(); ++i) CHECK(std::isfinite(tape.gradient(logits)(0, i)));
  }
  Tape<double> tape;
  const double nothing[] = {-inf, -inf}, unknown[] = {0, NAN, 1};
  const std::vector<int> two{2}, three{3};
  CHECK_THROWS_WITH_AS(subset_marginals(tape.input({nothing, 1, 2}), of(two), 1), doctest::Contains("no possible option"),
                       UsageError);
  CHECK(std::isnan(subset_normaliser(tape.input({unknown, 1, 3}), of(three), 2).item()));
}

TEST_CASE("subsets: many options of many sizes, against logarithms of elementary symmetric polynomials") {
  for (double spread : {0.0, 1.0, 20.0, 500.0})
    for (int k : {1, 7, 40, 150, 290}) {
      const int n = 300;
      const auto x = random_matrix(1, n, 5, -spread, spread);
      std::vector<double> log_e(k + 1, -INFINITY);  // of the options so far
      log_e[0] = 0;
      for (double v : x)
        for (int j = k; j > 0; --j) {
          const double a = log_e[j], b = log_e[j - 1] + v, most = std::max(a, b);
          if (most > -INFINITY) log_e[j] = most + std::log1p(std::exp(std::min(a, b) - most));
        }
      Tape<double> tape;
      const std::vector<int> options{n};
      const auto logits = place(tape, {x})[0];
      CHECK(subset_normaliser(logits, of(options), k).item() == doctest::Approx(log_e[k]).epsilon(1e-12));
      const auto marginals = subset_marginals(logits, of(options), k).value();
      double total = 0;
      for (int i = 0; i < n; ++i) total += marginals(0, i);
      CHECK(total == doctest::Approx(k).epsilon(1e-12));
    }
}

}  // namespace hardgrad::testing::subsets_test
