// Subsets as a distribution: draws and their frequencies, enumeration, mode, mean, divergence, several columns, refusals.
#include "core/choice/subsets.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"
#include "experiments/measurement/noise_enumerator.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::subsets_choice_test {
namespace {

/// Two rows of two columns, with four, three, two and four options. Two are picked, so the third column has no choice.
struct Scene {
  Tape<double> tape;
  std::vector<int> options = {4, 3, 2, 4};
  Matrix first = random_matrix(4, 4, 1), second = random_matrix(4, 4, 2);
  Var<double> logits = place(tape, {first})[0], others = place(tape, {second})[0];
  std::shared_ptr<const Subsets<double>> distribution = subsets(logits, options, 2, 2);
  RowsPtr root = Rows::root(2);
  std::vector<std::uint32_t> id = {7, 9};

  Choice<double> enumerated(bool side_by_side = false) {
    return distribution->enumerate(tape, root, 0, {.side_by_side = side_by_side});
  }
};

std::vector<int> subset(const Choice<double>& choice, std::size_t c) {
  const auto first = choice.picked().begin() + static_cast<std::ptrdiff_t>(c) * choice.subset_size();
  return {first, first + choice.subset_size()};
}

}  // namespace

TEST_CASE("subsets: enumeration visits every set of subsets once, with probabilities that sum to 1") {
  Scene scene;
  const auto choice = scene.enumerated();
  REQUIRE(choice.rows->size() == 6 * 3 + 1 * 6);
  CHECK(choice.hard());
  CHECK(choice.has_probability());
  CHECK(choice.subset_size() == 2);
  const auto log_p = row_sums(scene.distribution->log_probability(choice)).value();
  double mass[2] = {};
  std::map<std::pair<int, std::vector<int>>, int> times;
  for (std::size_t r = 0; r < choice.rows->size(); ++r) {
    mass[choice.rows->parent[r]] += std::exp(log_p.data[r]);
    auto both = subset(choice, 2 * r);
    const auto second = subset(choice, 2 * r + 1);
    both.insert(both.end(), second.begin(), second.end());
    ++times[{choice.rows->parent[r], both}];
  }
  CHECK(times.size() == choice.rows->size());
  CHECK(mass[0] == doctest::Approx(1).epsilon(1e-14));
  CHECK(mass[1] == doctest::Approx(1).epsilon(1e-14));
  CHECK(scene.distribution->chooses(1));
  CHECK(scene.distribution->support_size(0) == 6);
  CHECK(scene.distribution->support_size(2) == 1);
  CHECK_THROWS_AS(scene.distribution->enumerate(scene.tape, scene.root, 0, {.cap = 20}), NotExact);
}

TEST_CASE("subsets: columns side by side have their own subsets, the shorter ones spare rows") {
  Scene scene;
  const auto choice = scene.enumerated(true);
  REQUIRE(choice.rows->size() == 6 + 6);
  const auto log_p = scene.distribution->log_probability(choice).value();
  double mass[4] = {};
  for (std::size_t c = 0; c < choice.padding_mask.size(); ++c)
    if (!choice.padding_mask[c]) mass[choice.rows->parent[c / 2] * 2 + c % 2] += std::exp(log_p.data[c]);
  for (double m : mass) CHECK(m == doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("subsets: the mean of the enumerated subsets is the mean answer, the most probable one the mode") {
  Scene scene;
  const auto choice = scene.enumerated(true);
  const auto log_p = scene.distribution->log_probability(choice).value();
  const auto ones = choice.one_hot(scene.tape, 4).value();
  const std::vector<int> each = {0, 1};
  const auto rows = Rows::after(scene.root, each, 0);
  const auto mean = scene.distribution->mean(rows);
  const auto mode = scene.distribution->mode(scene.tape, rows);
  CHECK_FALSE(mean.hard());
  CHECK_FALSE(mean.has_probability());
  std::vector<double> sum(16), best(4, -INFINITY);
  std::vector<std::vector<int>> most(4);
  for (std::size_t c = 0; c < choice.padding_mask.size(); ++c) {
    if (choice.padding_mask[c]) continue;
    const std::size_t of = choice.rows->parent[c / 2] * 2 + c % 2;
    for (int i = 0; i < 4; ++i) sum[of * 4 + i] += std::exp(log_p.data[c]) * ones(c, i);
    if (log_p.data[c] > best[of]) best[of] = log_p.data[c], most[of] = subset(choice, c);
  }
  for (std::size_t i = 0; i < sum.size(); ++i) CHECK(std::abs(mean.weights().value().data[i] - sum[i]) < 1e-14);
  for (std::size_t c = 0; c < 4; ++c) CHECK(subset(mode, c) == most[c]);
}

TEST_CASE("subsets: scores and divergence equal sums over all subsets") {
  Scene scene;
  const auto other = subsets(scene.others, scene.options, 2, 2);
  const auto choice = scene.enumerated();
  const auto log_p = row_sums(scene.distribution->log_probability(choice)).value();
  const auto log_q = row_sums(other->log_probability(choice)).value();
  double kl[2] = {}, entropy[2] = {};
  for (std::size_t r = 0; r < choice.rows->size(); ++r) {
    kl[choice.rows->parent[r]] += std::exp(log_p.data[r]) * (log_p.data[r] - log_q.data[r]);
    entropy[choice.rows->parent[r]] -= std::exp(log_p.data[r]) * log_p.data[r];
  }
  for (int r = 0; r < 2; ++r) {
    CHECK(scene.distribution->divergence(*other).value().data[r] == doctest::Approx(kl[r]).epsilon(1e-12));
    CHECK(scene.distribution->entropy().value().data[r] == doctest::Approx(entropy[r]).epsilon(1e-12));
  }
  const auto squared = scene.distribution->squared_scores(choice);
  for (std::size_t r : {0u, 5u, 17u, 20u}) {
    Scene again;
    auto of = again.enumerated();
    std::vector<double> one(of.rows->size() * 2);
    one[2 * r + 1] = 1;
    again.tape.backward(weighted_sum(again.distribution->log_probability(of), std::span<const double>(one)));
    double length = 0;
    for (std::size_t i = 0; i < 16; ++i) length += std::pow(again.tape.gradient(again.logits).data[i], 2);
    CHECK(squared[2 * r + 1] == doctest::Approx(length).epsilon(1e-12));
  }
  const std::vector<int> each = {0, 1};
  const auto mean = scene.distribution->mean(Rows::after(scene.root, each, 0));
  const auto ratio = row_sums(scene.distribution->log_ratio(mean, *other)).value();
  for (int r = 0; r < 2; ++r) CHECK(ratio.data[r] == doctest::Approx(kl[r]).epsilon(1e-12));
}

TEST_CASE("subsets: draws have the exact frequencies, are keyed by place, and the replay visits every subset") {
  Tape<double> tape;
  constexpr int copies = 20000;
  const double x[] = {0.4, -1.0, 1.2, -INFINITY, 0.1, -0.5};
  const auto distribution = subsets(tape.input({x, 1, 6}), {6}, 3);
  const auto root = Rows::root(1);
  const auto all = distribution->enumerate(tape, root, 0, {});
  const auto log_p = distribution->log_probability(all).value();
  REQUIRE(all.rows->size() == 10);
  const auto rows = Rows::after(root, std::vector<int>(copies, 0), 0);
  const std::vector<std::uint32_t> id = {3};
  KeyedRandomness random{Key(5)};
  const auto drawn = distribution->sample(tape, rows, {random, id, 0});
  std::map<std::vector<int>, int> count;
  for (int r = 0; r < copies; ++r) ++count[subset(drawn, r)];
  double chi_squared = 0, mass = 0;
  for (std::size_t s = 0; s < 10; ++s) {
    const double expected = copies * std::exp(log_p.data[s]);
    chi_squared += std::pow(count[subset(all, s)] - expected, 2) / expected;
  }
  CHECK(count.size() == 10);
  CHECK(chi_squared < 27.9);  // 9 degrees of freedom, one in a thousand seeds
  const auto fewer = distribution->sample(tape, Rows::after(root, std::vector<int>(7, 0), 0), {random, id, 0});
  for (int r = 0; r < 7; ++r) CHECK(subset(fewer, r) == subset(drawn, r));

  measurement::NoiseEnumerator enumerator(false);
  int visits = 0;
  do {
    enumerator.begin();
    const auto one = distribution->sample(tape, Rows::after(root, {0}, 0), {enumerator, id, 0});
    CHECK(subset(one, 0) == subset(all, visits));
    CHECK(enumerator.weight() == doctest::Approx(std::exp(log_p.data[visits])).epsilon(1e-13));
    mass += enumerator.weight();
    ++visits;
  } while (enumerator.next());
  CHECK(visits == 10);
  CHECK(mass == doctest::Approx(1).epsilon(1e-13));
}

TEST_CASE("subsets: one option each is a categorical choice") {
  Tape<double> tape;
  const auto x = random_matrix(3, 5, 4);
  const auto logits = place(tape, {x})[0];
  const std::vector<int> options = {5, 2, 4};
  const auto one = subsets(logits, options, 1);
  const auto same = categorical(logits, options);
  const auto rows = Rows::after(Rows::root(3), {0, 1, 2}, 0);
  for (int r = 0; r < 3; ++r)
    CHECK(one->entropy().value().data[r] == doctest::Approx(same->entropy().value().data[r]).epsilon(1e-13));
  CHECK(one->mode(tape, rows).picked() == same->mode(tape, rows).option());
  const auto choice = one->unrank(rows, {3, 1, 0});
  CHECK(choice.option() == std::vector<int>{3, 1, 0});
  const auto p = one->log_probability(choice).value(), q = same->log_probability(choice).value();
  for (int r = 0; r < 3; ++r) CHECK(p.data[r] == doctest::Approx(q.data[r]).epsilon(1e-13));
  CHECK_THROWS_AS(one->categories(), Bug);
  const auto two = subsets(logits, options, 2)->mode(tape, rows);
  CHECK_THROWS_WITH_AS(two.option(), doctest::Contains("the choices are subsets"), Bug);
}

}  // namespace hardgrad::testing::subsets_choice_test
