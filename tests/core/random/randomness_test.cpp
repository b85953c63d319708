// Streams are places: the same place draws the same number, different places draw independent ones.
#include "core/random/randomness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/support/error.hpp"

namespace hardgrad::testing::randomness_test {
namespace {

TEST_CASE("a key depends on every name and number in its path") {
  const Key root(1);
  CHECK((root / "a" / "b").value() != (root / "b" / "a").value());
  CHECK((root / "ab").value() != (root / "a" / "b").value());
  CHECK((root / "1").value() != (root / 1).value());
  CHECK((root / 1).value() == (Key(1) / 1).value());
  CHECK((root / 1).value() != (Key(2) / 1).value());
}

TEST_CASE("streams do not change between versions: pinned numbers") {
  KeyedRandomness random(Key(1) / "pin");
  CHECK(random.uniform({1, 2, 3, 4}) == 0x1.7883318f5e1acp-4);
  std::set<double> seen;
  for (std::uint32_t i = 0; i < 4; ++i) {
    seen.insert(random.uniform({.example = i + 10}));
    seen.insert(random.uniform({.replica = i + 10}));
    seen.insert(random.uniform({.step = i + 10}));
    seen.insert(random.uniform({.index = i + 10}));
  }
  CHECK(seen.size() == 16);
}

TEST_CASE("columns drawn in succession equal those drawn separately") {
  const Key key(7);
  const auto alone = [&](Draw where) { return KeyedRandomness(key).uniform(where); };
  KeyedRandomness random(key);
  std::size_t compared = 0;
  const auto check = [&](Draw where) {
    CHECK(random.uniform(where) == alone(where));
    ++compared;
  };
  for (std::uint32_t replica : {0, 3, 4})  // indices that share a place in memory, and those of normals (the highest bits)
    for (std::uint32_t column = 0; column < 70; ++column)
      for (std::uint32_t index : {0u, 1u, 2u, 9u, 1u << 30, 1u << 31}) check({1, replica, 2, index, column});
  for (std::uint32_t column : {5u, 6u, 7u, 6u, 0u, 1u, 40u, 41u, 57u, 56u, 58u, ~0u - 1, ~0u, 0u, 1u, 2u})
    check({.column = column});
  CHECK(compared == 3 * 70 * 6 + 16);
  CHECK(random.uniform({.column = 1}) != random.uniform({.column = 2}));

  const std::size_t D = 37, S = 3;  // options of all columns at once: two, three, and no choice
  std::vector<double> p;
  std::vector<int> options, drawn(D, -1);
  for (std::size_t d = 0; d < D; ++d) {
    options.push_back(1 + static_cast<int>(d) % 3);
    for (std::size_t i = 0; i < S; ++i) p.push_back(1.0 / options[d]);
  }
  std::size_t seen = 0;
  for (std::uint32_t replica = 0; replica < 20; ++replica) {
    random.categorical(p, S, options, {.replica = replica, .column = 3}, drawn);
    for (std::size_t d = 0; d < D; ++d) {
      const std::span<const double> own(&p[d * S], options[d]);
      const Draw where{.replica = replica, .column = static_cast<std::uint32_t>(3 + d)};
      CHECK(drawn[d] == (options[d] == 1 ? 0 : KeyedRandomness(key).categorical(own, where)));
      seen += drawn[d];
    }
  }
  CHECK(seen > 200);

  for (std::size_t width : {2, 3}) {  // equal numbers of options, some of them impossible
    std::vector<double> q(D * width);
    for (std::size_t d = 0; d < D; ++d) {
      q[d * width + d % width] = d % 5 == 0 ? 1 : 0.75;
      q[d * width + (d + 1) % width] = d % 5 == 0 ? 0 : 0.25;
    }
    const std::vector<int> all(D, static_cast<int>(width));
    std::size_t equal = 0;
    for (std::uint32_t example = 0; example < 50; ++example) {
      random.categorical(q, width, all, {.example = example}, drawn);
      for (std::size_t d = 0; d < D; ++d)
        equal += drawn[d] == KeyedRandomness(key).categorical(std::span(q).subspan(d * width, width),
                                                              {.example = example, .column = static_cast<std::uint32_t>(d)});
    }
    CHECK(equal == 50 * D);
    std::vector<double> logistic(D);
    std::vector<Draw> places(D, {.example = 1, .replica = 2});
    for (std::uint32_t d = 0; d < D; ++d) places[d].column = d < 30 ? d + 4 : 3 * d;  // adjacent and spaced columns
    random.logistic(places, logistic, logistic);
    const auto check = [&](std::size_t i, const Draw& place) {
      const double u = alone(place);
      CHECK(logistic[i] == doctest::Approx(std::log(u / (1 - u))));
    };
    for (std::size_t d = 0; d < D; ++d) check(d, places[d]);
    places.resize(2);  // and the columns after each
    logistic.resize(D - D % 2);
    random.logistic(places, logistic, logistic);
    for (std::size_t i = 0; i < logistic.size(); ++i) {
      auto place = places[i / (D / 2)];
      place.column += static_cast<std::uint32_t>(i % (D / 2));
      check(i, place);
    }
  }
}

TEST_CASE("for two options the draw equals that of the general method") {
  KeyedRandomness random(Key(8));
  int ones = 0;
  for (double p : {0.0, 1e-300, 0.3, 0.5, 1 - 1e-16, 1.0})
    for (std::uint32_t i = 0; i < 200; ++i) {
      const double two[] = {p, 1 - p}, three[] = {p, 1 - p, 0};
      const int option = random.categorical(two, {.example = i});
      CHECK(option == random.categorical(three, {.example = i}));
      ones += option;
    }
  CHECK(ones > 600);
  CHECK(ones < 800);
}

TEST_CASE("a draw from probabilities that do not sum to 1 is a bug, for every method of drawing") {
  KeyedRandomness random(Key(1));
  int refused = 0;
  for (const std::vector<double>& p : {std::vector{0.6, 0.6}, {0.25, 0.25}, {0.2, 0.2, 0.2}, {1.0, 0.5, 0.5}}) {
    CHECK_THROWS_WITH_AS(random.categorical(p, {}), doctest::Contains("sum to"), Bug);
    std::vector<int> option(2);
    auto both = p;
    both.insert(both.end(), p.begin(), p.end());
    const std::vector<int> options(2, static_cast<int>(p.size()));
    CHECK_THROWS_AS(random.categorical(both, p.size(), options, {}, option), Bug);
    ++refused;
  }
  CHECK(refused == 4);
  CHECK(random.categorical(std::vector{0.3, 0.3, 0.4 + 1e-6}, {}) >= 0);  // rounding of sums in float is allowed
}

TEST_CASE("uniforms, normals and categories have their distributions, within five standard errors of 20,000 draws") {
  KeyedRandomness random(Key(3));
  const double p[] = {0.5, 0, 0.2, 0.3};
  double uniform = 0, normal = 0, squares = 0, counts[4] = {};
  const int n = 20000;
  for (std::uint32_t i = 0; i < n; ++i) {
    const double u = random.uniform({.example = i});
    CHECK_UNARY(u > 0 && u < 1);
    uniform += u;
    const double z = random.normal({.replica = i});
    normal += z;
    squares += z * z;
    ++counts[random.categorical(p, {.step = i})];
  }
  CHECK(std::abs(uniform / n - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(std::abs(normal / n) < 5 / std::sqrt(n));
  CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(counts[1] == 0);
  for (int k : {0, 2, 3}) CHECK(std::abs(counts[k] / n - p[k]) < 5 * std::sqrt(p[k] * (1 - p[k]) / n));
}

TEST_CASE("columns have separate draws, and the first has that of a single choice") {
  KeyedRandomness random(Key(3));
  const Draw where{.example = 1, .replica = 2, .step = 3, .index = 4};
  auto column = where;
  CHECK(random.uniform(column) == random.uniform(where));
  double sum = 0, squares = 0, products = 0, before = 0;
  const int n = 20000;
  for (int d = 0; d < n; ++d) {
    column.column = static_cast<std::uint32_t>(d);
    const double u = random.uniform(column);
    CHECK(u == random.uniform(column));
    sum += u;
    squares += u * u;
    products += (u - 0.5) * before;
    before = u - 0.5;
  }
  CHECK(std::abs(sum / n - 0.5) < 5 / std::sqrt(12.0 * n));
  CHECK(std::abs(squares / n - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / n));
  CHECK(std::abs(products / n) < 5 / (12 * std::sqrt(double(n))));  // neighbours are uncorrelated
}

TEST_CASE("a permutation contains every number once and depends on its key") {
  auto order = permutation(100, Key(4));
  CHECK(order == permutation(100, Key(4)));
  CHECK(order != permutation(100, Key(5)));
  std::sort(order.begin(), order.end());
  for (int i = 0; i < 100; ++i) CHECK(order[i] == i);
  CHECK(permutation(0, Key(4)).empty());
}

}  // namespace
}  // namespace hardgrad::testing::randomness_test
