// Both laws of subsets, with k by choice: against sums over all subsets and all orders, limits, draws, refusals.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/autodiff/reduce.hpp"
#include "core/autodiff/subsets.hpp"
#include "core/choice/subsets.hpp"
#include "experiments/measurement/noise_enumerator.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::subset_laws_test {
namespace {

constexpr SubsetDistribution laws[] = {SubsetDistribution::conditional_poisson, SubsetDistribution::plackett_luce};

/// p of each subset of k of these options, by a product of weights or a sum over all orders.
std::map<std::vector<int>, double> listed(const std::vector<double>& x, int k, SubsetDistribution law) {
  std::map<std::vector<int>, double> p;
  const int n = static_cast<int>(x.size());
  double total = 0, most = *std::max_element(x.begin(), x.end());
  for (int set = 0; set < 1 << n; ++set) {
    std::vector<int> order;
    for (int i = 0; i < n; ++i)
      if (set >> i & 1) order.push_back(i);
    if (static_cast<int>(order.size()) != std::min(k, n)) continue;
    const auto sorted = order;
    double& of = p[sorted];
    if (law == SubsetDistribution::conditional_poisson) {
      double sum = 0;
      for (int i : order) sum += x[i] - most;
      of = std::exp(sum);
    } else {
      do {
        double product = 1;
        std::vector<char> drawn(n);
        for (int i : order) {
          double left = 0;
          for (int j = 0; j < n; ++j) left += drawn[j] ? 0 : std::exp(x[j] - x[i]);
          product /= left;
          drawn[i] = 1;
        }
        of += product;
      } while (std::next_permutation(order.begin(), order.end()));
    }
    total += of;
  }
  for (auto& [set, of] : p) of /= total;
  return p;
}

/// Two rows of three columns: 5, 3, 4, 6, 2 and 6 options. 2, 1, 3, 3, 3 and 1 of them are picked.
struct Scene {
  Tape<double> tape;
  std::vector<int> options = {5, 3, 4, 6, 2, 6}, subset_size = {2, 1, 3, 3, 3, 1};
  Matrix first = random_matrix(6, 6, 1, -2, 2), second = random_matrix(6, 6, 2, -2, 2);
  Var<double> logits = place(tape, {first})[0], others = place(tape, {second})[0];
  RowsPtr root = Rows::root(2);

  std::shared_ptr<const Subsets<double>> distribution(SubsetDistribution law, bool other = false) {
    return subsets(other ? others : logits, options, {3, subset_size}, 3, law);
  }
  std::map<std::vector<int>, double> exact(std::size_t c, SubsetDistribution law, bool other = false) const {
    const auto& of = other ? second : first;
    return listed({row_of(of, c).begin(), row_of(of, c).begin() + options[c]}, subset_size[c], law);
  }
};

std::vector<int> subset(const Choice<double>& choice, std::size_t c) {
  std::vector<int> result;
  for (int k = 0; k < choice.subset_size(); ++k)
    if (const int i = choice.picked()[c * choice.subset_size() + k]; i >= 0) result.push_back(i);
  return result;
}

}  // namespace

TEST_CASE("subset laws: k by choice, density, marginals, entropy, mode and divergence equal sums over all subsets") {
  for (const auto law : laws) {
    Scene scene;
    const auto p = scene.distribution(law), q = scene.distribution(law, true);
    CHECK(p->subset_size() == 3);
    const auto all = p->enumerate(scene.tape, scene.root, 0, {.side_by_side = true});
    const auto log_p = p->log_probability(all).value();
    std::vector<double> mass(6);
    for (std::size_t c = 0; c < all.padding_mask.size(); ++c) {
      if (all.padding_mask[c]) continue;
      const std::size_t of = all.rows->parent[c / 3] * 3 + c % 3;
      const auto exact = scene.exact(of, law);
      REQUIRE(exact.contains(subset(all, c)));
      CHECK(std::abs(std::exp(log_p.data[c]) - exact.at(subset(all, c))) < 1e-13);
      mass[of] += std::exp(log_p.data[c]);
    }
    const auto rows = Rows::after(scene.root, {0, 1}, 0);
    const auto mode = p->mode(scene.tape, rows);
    std::vector<double> entropy(2), divergence(2);
    for (std::size_t c = 0; c < 6; ++c) {
      CHECK(mass[c] == doctest::Approx(1).epsilon(1e-13));
      const auto exact = scene.exact(c, law), other = scene.exact(c, law, true);
      CHECK(p->support_size(c) == static_cast<double>(exact.size()));
      std::vector<double> marginals(6);
      std::pair<double, std::vector<int>> best{};
      for (const auto& [set, of] : exact) {
        for (int i : set) marginals[i] += of;
        best = std::max(best, {of, set});
        entropy[c / 3] -= of * std::log(of);
        divergence[c / 3] += of * std::log(of / other.at(set));
      }
      CHECK(subset(mode, c) == best.second);
      for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(p->marginals().value()(c, i) - marginals[i]) < 1e-13);
    }
    for (std::size_t r = 0; r < 2; ++r) {
      CHECK(p->entropy().value().data[r] == doctest::Approx(entropy[r]).epsilon(1e-12));
      CHECK(p->divergence(*q).value().data[r] == doctest::Approx(divergence[r]).epsilon(1e-12));
    }
    CHECK_THROWS_AS(p->divergence(*scene.distribution(laws[law == laws[0]], true)), Bug);
  }
}

TEST_CASE("subset laws: scores and gradients, k by choice") {
  Scene scene;
  for (const auto law : laws) {
    const auto all = scene.distribution(law)->enumerate(scene.tape, scene.root, 0, {.side_by_side = true});
    const auto f = [&](auto value) {
      return [&, value](auto&, const auto& v) { return value(*subsets(v[0], scene.options, {3, scene.subset_size}, 3, law)); };
    };
    expect_gradient(f([](const auto& p) { return p.marginals(); }), {scene.first});
    expect_gradient(f([](const auto& p) { return p.entropy(); }), {scene.first});
    const auto p = scene.distribution(law);
    for (std::size_t c = 0; c < all.padding_mask.size(); c += 7) {
      if (all.padding_mask[c]) continue;
      const int of = all.rows->parent[c / 3] * 3 + static_cast<int>(c % 3);
      const auto picked = std::span(all.picked()).subspan(c * 3, 3);
      const auto score = p->score(of, picked);
      for (std::size_t i = 0; i < score.size(); ++i) {
        const auto at = [&](double by) {
          std::vector<double> x(row_of(scene.first, of).begin(), row_of(scene.first, of).begin() + scene.options[of]);
          x[i] += by;
          return std::log(listed(x, scene.subset_size[of], law).at(subset(all, c)));
        };
        CHECK(std::abs(score[i] - (at(1e-5) - at(-1e-5)) / 2e-5) < 1e-8);
      }
    }
  }
}

TEST_CASE("subset laws: draws have the exact frequencies, the replay visits every subset") {
  constexpr int copies = 20000;
  for (const auto law : laws) {
    Scene scene;
    const auto p = scene.distribution(law);
    const std::vector<std::uint32_t> id = {3, 4};
    KeyedRandomness random{Key(5)};
    const auto drawn = p->sample(scene.tape, Rows::after(scene.root, std::vector<int>(copies, 1), 0), {random, id, 0});
    for (std::size_t d = 0; d < 3; ++d) {
      std::map<std::vector<int>, int> count;
      for (int r = 0; r < copies; ++r) ++count[subset(drawn, r * 3 + d)];
      double chi_squared = 0;
      const auto exact = scene.exact(3 + d, law);
      for (const auto& [set, of] : exact) chi_squared += std::pow(count[set] - copies * of, 2) / (copies * of);
      CHECK(count.size() == exact.size());
      CHECK(chi_squared < (d == 0 ? 43.9 : d == 1 ? 1e-9 : 20.6));  // 19, 0 and 5 degrees of freedom, one in a thousand seeds
    }
    measurement::NoiseEnumerator enumerator(false);
    int visits = 0;
    double mass = 0;
    do {
      enumerator.begin();
      (void)p->sample(scene.tape, Rows::after(scene.root, {0}, 0), {enumerator, id, 0});
      mass += enumerator.weight();
      ++visits;
    } while (enumerator.next());
    CHECK(visits == 10 * 3 * 4);
    CHECK(mass == doctest::Approx(1).epsilon(1e-13));
  }
}

TEST_CASE("plackett_luce: extreme logits give limits, not NaN") {
  const double inf = INFINITY;
  struct Case {
    std::vector<double> x;
    int k;
    std::vector<double> marginals;
    double entropy;
  };
  const std::vector<Case> cases = {{{700, -700, -700}, 2, {1, 0.5, 0.5}, std::log(2)},
                                   {{-700, 700, 700, 700}, 1, {0, 1. / 3, 1. / 3, 1. / 3}, std::log(3)},
                                   {{700, 700, -700, -700}, 2, {1, 1, 0, 0}, 0},
                                   {{-700, -700, -700, -700}, 2, {0.5, 0.5, 0.5, 0.5}, std::log(6)},
                                   {{-inf, 700, -inf, -700, -700}, 2, {0, 1, 0, 0.5, 0.5}, std::log(2)},
                                   {{-inf, 3, -inf, -2}, 2, {0, 1, 0, 1}, 0},
                                   {{-inf, 3, -inf, -inf}, 2, {0, 1, 0, 0}, 0},
                                   {{5}, 3, {1}, 0}};
  for (const auto& c : cases) {
    CAPTURE(c.x);
    Tape<double> tape;
    const auto logits = tape.input({c.x.data(), 1, c.x.size()});
    const auto p = subsets(logits, {static_cast<int>(c.x.size())}, c.k, 1, SubsetDistribution::plackett_luce);
    for (std::size_t i = 0; i < c.x.size(); ++i) CHECK(std::abs(p->marginals().value()(0, i) - c.marginals[i]) < 1e-12);
    CHECK(std::abs(p->entropy().item() - c.entropy) < 1e-12);
    const auto all = p->enumerate(tape, Rows::root(1), 0, {});
    tape.backward(sum(p->log_probability(all)));
    for (std::size_t i = 0; i < c.x.size(); ++i) CHECK(std::isfinite(tape.gradient(logits)(0, i)));
    const std::vector<std::uint32_t> id = {3};
    KeyedRandomness random{Key(5)};
    CHECK(subset(p->sample(tape, Rows::after(Rows::root(1), {0}, 0), {random, id, 0}), 0).size() ==
          subset(p->mode(tape, Rows::after(Rows::root(1), {0}, 0)), 0).size());
  }
}

TEST_CASE("subset laws: refusals") {
  Tape<double> tape;
  const auto logits = tape.constant(2, 30);
  for (const auto law : laws) {
    CHECK_THROWS_WITH_AS(subsets(logits, {30, 30}, {2, {2, 0}}, 1, law), doctest::Contains("choice 1 is to pick 0 options"),
                         UsageError);
    CHECK_THROWS_AS(subsets(logits, {30, 30}, {2, {2, 3}}, 1, law), Bug);
    CHECK_THROWS_AS(subsets(logits, {30, 30}, {2, {2}}, 1, law), Bug);
    const double none[] = {-INFINITY, -INFINITY};
    CHECK_THROWS_WITH_AS(subsets(tape.input({none, 1, 2}), {2}, 1, 1, law)->marginals(),
                         doctest::Contains("no possible option"), UsageError);
  }
  CHECK_THROWS_WITH_AS(subsets(logits, {30, 30}, 11, 1, SubsetDistribution::plackett_luce),
                       doctest::Contains("pick at most 10 options, not 11"), UsageError);
  const auto many = subsets(logits, {30, 30}, 10, 1, SubsetDistribution::plackett_luce);
  CHECK_THROWS_WITH_AS(many->marginals(), doctest::Contains("3.0045e+07 subsets"), NotExact);
}

}  // namespace hardgrad::testing::subset_laws_test
