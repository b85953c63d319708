// Options of many columns at once are those of the probabilities in double, also where a uniform number is very near to a sum of
// probabilities.
#include "core/random/column_draws.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/support/error.hpp"

namespace hardgrad::testing::column_draws_test {
namespace {

constexpr std::size_t D = 700;  // more than one block, and not a whole number of registers
constexpr Draw where{.example = 3, .replica = 1, .step = 2, .index = 5, .column = 9};

Draw at(std::size_t d) {
  auto place = where;
  place.column += static_cast<std::uint32_t>(d);
  return place;
}

/// The same numbers, without their words.
struct Wordless final : Randomness {
  KeyedRandomness from{Key(4)};
  using Randomness::categorical;
  int categorical(std::span<const double> p, Draw place) override { return from.categorical(p, place); }
  double uniform(Draw place, const Pieces&) override { return from.uniform(place); }
};

/// Log probabilities [D, S]: even ones, peaked ones, impossible options; in two of three columns the first sum is within a few
/// roundings of the column's uniform number.
template <class T>
std::vector<T> log_probabilities(std::size_t S, KeyedRandomness& random) {
  std::vector<T> log_p;
  for (std::size_t d = 0; d < D; ++d) {
    std::vector<double> p(S);
    double total = 0;
    for (std::size_t o = 0; o < S; ++o) {
      const double v =
          random.uniform({.example = 99, .index = static_cast<std::uint32_t>(o), .column = static_cast<std::uint32_t>(d)});
      total += p[o] = d % 7 == 0 ? std::pow(v, 40) : d % 11 == 0 && v < 0.3 && o > 0 ? 0 : v;
    }
    for (double& x : p) x /= total;
    const double others = std::accumulate(p.begin() + 1, p.end(), 0.0);
    if (d % 3 != 0 && others > 0) {
      const double u = random.uniform(at(d)), first = std::min(u * (1 + (static_cast<double>(d % 41) - 20.5) * 1e-8), 1.0);
      for (std::size_t o = 1; o < S; ++o) p[o] *= (1 - first) / others;
      p[0] = first;
    }
    for (double x : p) log_p.push_back(static_cast<T>(std::log(x)));
  }
  return log_p;
}

std::vector<double> row(const auto& log_p, std::size_t S, std::size_t d) {
  std::vector<double> p;
  for (std::size_t o = 0; o < S; ++o) p.push_back(std::exp(static_cast<double>(log_p[d * S + o])));
  return p;
}

}  // namespace

TEST_CASE_TEMPLATE("columns drawn at once have the options of their probabilities in double", T, float, double) {
  KeyedRandomness random(Key(4));
  Wordless wordless;
  for (std::size_t S : {2, 3, 4, 15, 16}) {
    const auto log_p = log_probabilities<T>(S, random);
    const std::vector<int> options(D, static_cast<int>(S));
    std::vector<int> option(D, -1), without(D, -1);
    draw_categories(std::span<const T>(log_p), S, options, random, std::span(&where, 1), option);
    draw_categories(std::span<const T>(log_p), S, options, wordless, std::span(&where, 1), without);
    CHECK(option == without);
    std::size_t wrong = 0, first = 0;
    for (std::size_t d = 0; d < D; ++d) {
      wrong += option[d] != random.categorical(row(log_p, S, d), at(d));
      first += option[d] == 0;
    }
    CHECK(wrong == 0);
    CHECK(first > 100);
    CHECK(first < 600);
  }
}

TEST_CASE_TEMPLATE("columns with other numbers of options, and few columns", T, float, double) {
  KeyedRandomness random(Key(4));
  const auto log_p = log_probabilities<T>(3, random);
  for (std::size_t n : {5, 40}) {
    std::vector<int> options(n, 3), option(n, -1);
    options[2] = 1;
    draw_categories(std::span<const T>(log_p).first(n * 3), 3, options, random, std::span(&where, 1), option);
    CHECK(option[2] == 0);
    CHECK(option[4] == random.categorical(row(log_p, 3, 4), at(4)));
  }
}

TEST_CASE_TEMPLATE("antithetic pairs of columns are those of one column each", T, float, double) {
  KeyedRandomness random(Key(4));
  Wordless wordless;
  auto log_p = log_probabilities<T>(2, random);
  for (std::size_t d = 0; d < D; ++d) {  // near the first or the second of its sums |p_1 - p_0| and max(p)
    const double u = random.uniform(at(d)), sum = u * (1 + (static_cast<double>(d % 41) - 20.5) * 1e-8);
    const double p = d % 3 == 0 ? (1 + sum) / 2 : sum > 0.5 ? sum : 0.5;
    if (d % 5 == 0) continue;
    log_p[2 * d] = static_cast<T>(std::log(d % 2 == 0 ? p : 1 - p));
    log_p[2 * d + 1] = static_cast<T>(std::log(d % 2 == 0 ? 1 - p : p));
  }
  std::vector<int> first(D, -1), second(D, -1), one(D), other(D);
  antithetic_bits(std::span<const T>(log_p), random, where, first, second);
  antithetic_bits(std::span<const T>(log_p), wordless, where, one, other);
  CHECK(first == one);
  CHECK(second == other);
  std::size_t wrong = 0, differ = 0;
  for (std::size_t d = 0; d < D; ++d) {
    const auto p = row(log_p, 2, d);
    const auto pair = antithetic_bits(p[0], p[1], random, at(d));
    wrong += pair[0] != first[d] || pair[1] != second[d];
    differ += first[d] != second[d];
  }
  CHECK(wrong == 0);
  CHECK(differ > 100);
}

TEST_CASE("columns whose probabilities do not sum to 1 are a bug") {
  KeyedRandomness random(Key(4));
  for (std::size_t S : {2, 3}) {
    std::vector<float> log_p(D * S, std::log(1 / static_cast<float>(S)));
    const std::vector<int> options(D, static_cast<int>(S));
    std::vector<int> option(D);
    log_p[100 * S] += 0.1f;
    CHECK_THROWS_AS(draw_categories(std::span<const float>(log_p), S, options, random, std::span(&where, 1), option), Bug);
  }
}

TEST_CASE("the words of columns have the columns' uniform numbers") {
  KeyedRandomness random(Key(4));
  for (std::size_t n : {1, 16, 37}) {
    std::vector<std::uint64_t> word(n);
    CHECK(random.words(where, word));
    for (std::size_t d = 0; d < n; ++d) CHECK((static_cast<double>(word[d] >> 11) + 0.5) * 0x1p-53 == random.uniform(at(d)));
  }
  Wordless wordless;
  std::vector<std::uint64_t> word(3);
  CHECK_FALSE(wordless.words(where, word));
}

}  // namespace hardgrad::testing::column_draws_test
