#include "core/autodiff/attention.hpp"

#include "core/autodiff/elementwise.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::matching_test {

TEST_CASE("match_scores: gradients for examples of every size") {
  for (const Items& items : {Items(3, 1), Items(3, 3), Items(std::vector<int>{2, 3, 1}), Items(std::vector<int>{1, 0, 4})}) {
    const std::vector<int> example{2, 0, 2, 0, 1};
    const auto of = std::span<const int>(example);
    expect_gradient([&](auto&, const auto& v) { return match_scores(v[0], v[1], of, items); },
                    {random_matrix(5, 3, 1), random_matrix(items.total(), 3, 2)});
  }
  // A matrix matched with itself, as in word models: rows 0 and 3 are one sentence, 1 and 2 the other.
  const Items two(2, 2);
  const std::vector<int> other{1, 1, 0, 0};
  expect_gradient([&](auto&, const auto& v) { return add(match_scores(v[0], v[0], std::span<const int>(other), two), v[1]); },
                  {random_matrix(4, 3, 3), random_matrix(4, 2, 4)});
}

TEST_CASE("match_scores is -log(1 + |x - y|), -inf beyond an example's items, and has no gradient for equal items") {
  const Items items(std::vector<int>{2, 1});
  const std::vector<int> example{1, 0};
  Tape<double> tape;
  const auto v = place(tape, {Matrix{{1, 2}, {0.5, -1}}, Matrix{{0.5, -1}, {3.5, 3}, {1, 2}}});
  const auto log_a = match_scores(v[0], v[1], std::span<const int>(example), items);
  CHECK(log_a.value()(0, 0) == 0);
  CHECK(log_a.value()(0, 1) == -INFINITY);
  CHECK(log_a.value()(1, 0) == 0);
  CHECK(log_a.value()(1, 1) == doctest::Approx(-std::log(6)).epsilon(1e-14));  // |(3, 4)| = 5
  const std::vector<double> ones(4, 1.0);
  tape.backward(log_a, {ones.data(), 2, 2});
  const auto x = tape.gradient(v[0]), y = tape.gradient(v[1]);
  for (int j = 0; j < 2; ++j) {
    CHECK(x(0, j) == 0);
    CHECK(x(1, j) == doctest::Approx((j == 0 ? 3.0 : 4.0) / 5 / 6).epsilon(1e-14));
    CHECK(y(1, j) == doctest::Approx(-(j == 0 ? 3.0 : 4.0) / 5 / 6).epsilon(1e-14));
    CHECK((y(0, j) == 0 && y(2, j) == 0));
  }
  CHECK_THROWS_AS(match_scores(v[0], v[0], std::span<const int>(example), items), Bug);
}

}  // namespace hardgrad::testing::matching_test
