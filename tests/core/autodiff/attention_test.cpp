#include "core/autodiff/attention.hpp"

#include "core/autodiff/elementwise.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::attention_test {
namespace {

/// Example of each row: no rows, one, several, enough for a matrix product.
const std::vector<std::vector<int>> groupings{{0}, {0, 0, 0, 0, 0, 0},      {0, 1, 2}, {0, 0, 2, 2, 2, 2, 2},
                                              {1}, {0, 0, 0, 1, 1, 1, 1, 2}};

}  // namespace

TEST_CASE("scores and mixtures, for groups of every size") {
  const std::size_t width = 4;
  for (const auto& grouping : groupings)
    for (const Items& items : {Items(3, 1), Items(3, 3), Items(std::vector<int>{2, 3, 1}), Items(std::vector<int>{1, 0, 4})}) {
      const std::span<const int> example(grouping);
      const auto query = random_matrix(grouping.size(), width, 1), keys = random_matrix(items.total(), width, 2);
      const auto v = random_matrix(1, width, 3), weights = random_matrix(grouping.size(), items.most(), 4);
      expect_gradient([&](auto&, const auto& x) { return dot_scores(x[0], x[1], example, items); }, {query, keys});
      expect_gradient([&](auto&, const auto& x) { return additive_scores(x[0], x[1], x[2], example, items); },
                      {query, keys, v});
      expect_gradient([&](auto&, const auto& x) { return mix(x[0], x[1], example, items); }, {weights, keys});
    }
}

TEST_CASE("an example's scores are the same alone and in a batch, and 0 beyond its items") {
  const Items items(std::vector<int>{2, 3, 1});
  for (const auto& grouping : groupings) {
    Tape<double> tape;
    const std::span<const int> example(grouping);
    const auto x = place(tape, {random_matrix(grouping.size(), 5, 1), random_matrix(6, 5, 2), random_matrix(1, 5, 3)});
    const auto dots = dot_scores(x[0], x[1], example, items).value(),
               sums = additive_scores(x[0], x[1], x[2], example, items).value();
    for (std::size_t r = 0; r < example.size(); ++r)
      for (int i = 0; i < 3; ++i) {
        double dot = 0, sum = 0;
        for (std::size_t j = 0; j < 5 && i < items.count(example[r]); ++j) {
          const double q = x[0].value()(r, j), k = x[1].value()(items.row(example[r], i), j);
          dot += q * k;
          sum += x[2].value()(0, j) * std::tanh(q + k);
        }
        CHECK(dots(r, i) == doctest::Approx(dot).epsilon(1e-12));
        CHECK(sums(r, i) == doctest::Approx(sum).epsilon(1e-12));
      }
  }
}

TEST_CASE("heads: rows take the vectors v in turn, and have separate items") {
  const Items items(std::vector<int>{2, 2, 3, 3});  // two examples of two heads
  const std::vector<int> head{0, 1, 0, 1, 2, 3};
  const auto query = random_matrix(6, 4, 1), keys = random_matrix(10, 4, 2), v = random_matrix(2, 4, 3);
  const std::span<const int> of(head);
  expect_gradient([&](auto&, const auto& x) { return additive_scores(x[0], x[1], x[2], of, items); }, {query, keys, v});
  expect_gradient([&](auto&, const auto& x) { return dot_scores(x[0], x[1], of, items); }, {query, keys});
  Tape<double> tape;
  const auto x = place(tape, {query, keys, v});
  const auto e = additive_scores(x[0], x[1], x[2], of, items).value();
  for (std::size_t r = 0; r < 6; ++r)
    for (int i = 0; i < items.count(head[r]); ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 4; ++j)
        sum += x[2].value()(r % 2, j) * std::tanh(x[0].value()(r, j) + x[1].value()(items.row(head[r], i), j));
      CHECK(e(r, i) == doctest::Approx(sum).epsilon(1e-12));
    }
}

TEST_CASE("attention as a network uses it: keys are values, scores are weights") {
  for (const auto& grouping : groupings) {
    const std::span<const int> example(grouping);
    const Items items(3, 2);
    const auto query = random_matrix(grouping.size(), 5, 1), keys = random_matrix(3 * 2, 5, 2);
    expect_gradient(
        [&](auto&, const auto& x) {
          auto z = mix(dot_scores(x[0], x[1], example, items), x[1], example, items);
          return add(mix(additive_scores(z, x[1], x[2], example, items), x[1], example, items), z);
        },
        {query, keys, random_matrix(1, 5, 3)});
  }
}

TEST_CASE("one matrix as query, keys and weights") {
  const std::vector<int> example{0, 1, 2};
  const std::span<const int> e(example);
  const Items one(3, 1);
  expect_gradient([&](auto&, const auto& x) { return dot_scores(x[0], x[0], e, one); }, {random_matrix(3, 4, 1)});
  expect_gradient([&](auto&, const auto& x) { return additive_scores(x[0], x[0], x[1], e, one); },
                  {random_matrix(3, 4, 1), random_matrix(1, 4, 2)});
  expect_gradient([&](auto&, const auto& x) { return mix(x[0], x[0], e, one); }, {random_matrix(3, 1, 1)});
}

TEST_CASE("widths beyond a register") {
  const std::vector<int> example{0, 0, 1, 1, 1, 1, 1};
  const std::span<const int> e(example);
  const Items items(2, 3);
  for (std::size_t width : {16, 19, 33}) {
    const auto query = random_matrix(7, width, 1), keys = random_matrix(2 * 3, width, 2);
    expect_gradient([&](auto&, const auto& x) { return dot_scores(x[0], x[1], e, items); }, {query, keys});
    expect_gradient([&](auto&, const auto& x) { return additive_scores(x[0], x[1], x[2], e, items); },
                    {query, keys, random_matrix(1, width, 3)});
    expect_gradient([&](auto&, const auto& x) { return mix(x[0], x[1], e, items); }, {random_matrix(7, 3, 4), keys});
  }
}

TEST_CASE("nonexistent examples are rejected") {
  Tape<double> tape;
  const std::vector<int> example{0, 2};
  auto q = tape.constant(2, 3), k = tape.constant(4, 3);
  const Items items(2, 2);
  CHECK_THROWS_AS(dot_scores(q, k, std::span<const int>(example), items), Bug);
  CHECK_THROWS_AS(mix(tape.constant(2, 2), k, std::span<const int>(example), items), Bug);
  CHECK_THROWS_AS(dot_scores(q, k, std::span<const int>(example).first(1), items), Bug);
  CHECK_THROWS_AS(dot_scores(q, tape.constant(3, 3), std::span<const int>(example), items), Bug);
}

}  // namespace hardgrad::testing::attention_test
