// Shared n-grams and their F scores, by hand.
#include "core/support/text_metrics.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace hardgrad::testing::ngrams_test {
namespace {
using Words = std::vector<int>;
double f1(const Words& said, const Words& right) { return word_f1(said, right); }
double chr(const Words& said, const Words& right) { return chrf(said, right); }
}  // namespace

TEST_CASE("ngrams: each counts at most as often as in the other sequence") {
  CHECK(shared_ngrams(Words{1, 1, 1, 2}, Words{1, 2, 1}, 1) == 3);
  CHECK(shared_ngrams(Words{1, 1, 1, 2}, Words{1, 2, 1}, 2) == 1);
  CHECK(shared_ngrams(Words{1, 1}, Words{1, 2, 1}, 3) == 0);
  CHECK(shared_ngrams(Words{1, 2}, Words{1, 2}, 1, 2) == 1);
}

TEST_CASE("ngrams: F1 of words") {
  CHECK(f1({1, 2, 2}, {2, 3}) == doctest::Approx(0.4));  // P = 1/3, R = 1/2
  CHECK(f1({3, 2}, {2, 3}) == 1);
  CHECK(f1({}, {}) == 1);
  CHECK(f1({}, {1}) == 0);
  CHECK(f1({1}, {}) == 0);
  CHECK(f1({4}, {1}) == 0);
}

TEST_CASE("ngrams: chrF averages precision and recall over the orders, and recall weighs four times") {
  // a b c / a b d c: 3 of 3 and 4, 1 of 2 and 3, 0 of 1 and 2
  const double P = (1 + 0.5) / 3, R = (0.75 + 1.0 / 3) / 3;
  CHECK(chr({1, 2, 3}, {1, 2, 4, 3}) == doctest::Approx(5 * P * R / (4 * P + R)).epsilon(1e-12));
  CHECK(chr({1, 2, 3}, {1, 2, 4, 3}) < chr({1, 2, 4, 3}, {1, 2, 3}));
  CHECK(chr({1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}) == doctest::Approx(1));
  CHECK(chr({5}, {1, 2}) == 0);
}

}  // namespace hardgrad::testing::ngrams_test
