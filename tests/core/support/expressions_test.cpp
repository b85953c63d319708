// Expressions as words, by hand.
#include "core/support/text_metrics.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace hardgrad::testing::expressions_test {
namespace {
using Words = std::vector<int>;
constexpr int plus = 0, minus = 1, times = 2;
int n(int number) { return number + 2; }  // its word
}  // namespace

TEST_CASE("expressions: * before + and -, from the left") {
  const auto is = [](const Words& words, long value) { return expression_value(words) == value; };
  CHECK(is({n(7)}, 7));
  CHECK(is({n(2), plus, n(3), times, n(4)}, 14));
  CHECK(is({n(2), times, n(3), plus, n(4)}, 10));
  CHECK(is({n(4), minus, n(1), minus, n(2)}, 1));
  CHECK(is({n(1), minus, n(2), times, n(3)}, -5));
  CHECK(is({n(5), minus, n(2), times, n(2), plus, n(1)}, 2));
  for (const auto& words :
       {Words{}, Words{plus}, Words{n(1), n(2), n(3)}, Words{n(1), plus}, Words{minus, n(2), plus}, Words{n(1), plus, times}})
    CHECK(!expression_value(words));
}

TEST_CASE("expressions: a solution has the value and every number once") {
  const Words wanted{14, n(2), n(4), n(3)};
  CHECK(solves(Words{n(2), plus, n(3), times, n(4)}, wanted) == 1);
  CHECK(solves(Words{n(4), times, n(3), plus, n(2)}, wanted) == 1);
  CHECK(solves(Words{n(4), plus, n(3), times, n(2)}, wanted) == 0);                 // another value
  CHECK(solves(Words{n(3), times, n(4), plus, n(1), plus, n(1)}, wanted) == 0);     // other numbers
  CHECK(solves(Words{n(2), plus, n(3), times, n(4)}, Words{14, n(2), n(3)}) == 0);  // a number too many
  CHECK(solves(Words{n(2), plus, n(3), times}, wanted) == 0);
}

}  // namespace hardgrad::testing::expressions_test
