#include "core/autodiff/attention.hpp"

#include "core/autodiff/elementwise.hpp"
#include "tests/support/gradient_check.hpp"

using namespace hardgrad;
using namespace hardgrad::testing;

namespace {

/// Rows per example in turn: none, one, several, enough for a matrix product.
const std::vector<std::vector<int>> groupings{{0}, {0, 0, 0, 0, 0, 0},      {0, 1, 2}, {0, 0, 2, 2, 2, 2, 2},
                                              {1}, {0, 0, 0, 1, 1, 1, 1, 2}};

}  // namespace

TEST_CASE("scores and mixtures, groups of every size") {
  const std::size_t batch = 3, width = 4;
  for (const auto& grouping : groupings)
    for (std::size_t items : {1, 3}) {
      const std::span<const int> example(grouping);
      const auto query = random_matrix(grouping.size(), width, 1),
                 keys = random_matrix(batch * items, width, 2);
      const auto v = random_matrix(1, width, 3), weights = random_matrix(grouping.size(), items, 4);
      expect_gradient([&](auto&, const auto& x) { return dot_scores(x[0], x[1], example, items); },
                      {query, keys});
      expect_gradient([&](auto&, const auto& x) { return additive_scores(x[0], x[1], x[2], example, items); },
                      {query, keys, v});
      expect_gradient([&](auto&, const auto& x) { return mix(x[0], x[1], example); }, {weights, keys});
    }
}

TEST_CASE("attention as a network uses it: keys are values, scores are weights") {
  for (const auto& grouping : groupings) {
    const std::span<const int> example(grouping);
    const auto query = random_matrix(grouping.size(), 5, 1), keys = random_matrix(3 * 2, 5, 2);
    expect_gradient(
        [&](auto&, const auto& x) {
          auto z = mix(dot_scores(x[0], x[1], example, 2), x[1], example);
          return add(mix(additive_scores(z, x[1], x[2], example, 2), x[1], example), z);
        },
        {query, keys, random_matrix(1, 5, 3)});
  }
}

TEST_CASE("one matrix as query, keys and weights") {
  const std::vector<int> example{0, 1, 2};
  const std::span<const int> e(example);
  expect_gradient([&](auto&, const auto& x) { return dot_scores(x[0], x[0], e, 1); },
                  {random_matrix(3, 4, 1)});
  expect_gradient([&](auto&, const auto& x) { return additive_scores(x[0], x[0], x[1], e, 1); },
                  {random_matrix(3, 4, 1), random_matrix(1, 4, 2)});
  expect_gradient([&](auto&, const auto& x) { return mix(x[0], x[0], e); }, {random_matrix(3, 1, 1)});
}

TEST_CASE("widths beyond a register") {
  const std::vector<int> example{0, 0, 1, 1, 1, 1, 1};
  const std::span<const int> e(example);
  for (std::size_t width : {16, 19, 33}) {
    const auto query = random_matrix(7, width, 1), keys = random_matrix(2 * 3, width, 2);
    expect_gradient([&](auto&, const auto& x) { return dot_scores(x[0], x[1], e, 3); }, {query, keys});
    expect_gradient([&](auto&, const auto& x) { return additive_scores(x[0], x[1], x[2], e, 3); },
                    {query, keys, random_matrix(1, width, 3)});
    expect_gradient([&](auto&, const auto& x) { return mix(x[0], x[1], e); }, {random_matrix(7, 3, 4), keys});
  }
}

TEST_CASE("examples that do not exist are refused") {
  Tape<double> tape;
  const std::vector<int> example{0, 2};
  auto q = tape.constant(2, 3), k = tape.constant(4, 3);
  CHECK_THROWS_AS(dot_scores(q, k, std::span<const int>(example), 2), Bug);
  CHECK_THROWS_AS(mix(tape.constant(2, 2), k, std::span<const int>(example)), Bug);
  CHECK_THROWS_AS(dot_scores(q, k, std::span<const int>(example).first(1), 2), Bug);
}
