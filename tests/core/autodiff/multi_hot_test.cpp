// Products with rows of ones by their places, against the product with the same rows as a matrix.
#include "core/autodiff/multi_hot.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/reduce.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::multi_hot_test {
namespace {

struct Case {
  std::size_t rows, groups, options, outputs;
};

/// A column of each group for every row; `missing`: every seventh has none.
std::vector<int> places_of(const Case& c, bool missing) {
  KeyedRandomness randomness{Key(c.rows)};
  std::vector<int> places;
  for (std::size_t i = 0; i < c.rows * c.groups; ++i) {
    const double u = randomness.uniform({.index = static_cast<std::uint32_t>(i)});
    const auto option = static_cast<std::size_t>(u * static_cast<double>(c.options));
    places.push_back(missing && i % 7 == 3 ? -1 : static_cast<int>(i % c.groups * c.options + option));
  }
  return places;
}

template <class T>
Var<T> matrix_of(Tape<T>& tape, const std::vector<int>& places, const Case& c) {
  const auto x = tape.constant(c.rows, c.groups * c.options);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i] >= 0) tape.mutable_value(x)(i / c.groups, static_cast<std::size_t>(places[i])) = 1;
  return x;
}

template <class T>
void check_against_product(const Case& c, bool missing, double tolerance) {
  CAPTURE(c.rows);
  CAPTURE(c.outputs);
  const auto places = places_of(c, missing);
  const MultiHot ones{places, c.groups};
  const std::vector<Matrix> inputs{random_matrix(c.outputs, c.groups * c.options, 1), random_matrix(1, c.outputs, 2)};
  auto sums = [&](auto&, const auto& v) { return linear(ones, v[0], v[1]); };
  auto products = [&](auto& tape, const auto& v) { return linear(matrix_of(tape, places, c), v[0], v[1]); };
  const auto [y, g] = evaluate<T>(sums, inputs);
  const auto [expected_y, expected_g] = evaluate<T>(products, inputs);
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(y[i] - expected_y[i]));
  for (std::size_t i = 0; i < g.size(); ++i) worst = std::max(worst, std::abs(g[i] - expected_g[i]));
  CHECK(worst < tolerance);
}

}  // namespace

TEST_CASE("multi_hot: values and gradients of the product with the matrix") {
  for (const auto& c : std::vector<Case>{{1, 1, 2, 1}, {4, 3, 5, 7}, {9, 2, 40, 16}, {40, 5, 61, 37}, {300, 4, 30, 33}})
    for (bool missing : {false, true}) {
      check_against_product<double>(c, missing, 1e-12);
      check_against_product<float>(c, missing, 1e-4);
    }
}

TEST_CASE("multi_hot: gradients, also where they add to others") {
  const Case c{5, 2, 4, 9};
  const auto places = places_of(c, true);
  const MultiHot ones{places, c.groups};
  const std::vector<Matrix> inputs{random_matrix(c.outputs, c.groups * c.options, 3), random_matrix(1, c.outputs, 4)};
  expect_gradient([&](auto&, const auto& v) { return linear(ones, v[0]); }, {inputs[0]});
  expect_gradient(
      [&](auto&, const auto& v) {
        const auto twice = add(linear(ones, v[0], v[1]), linear(ones, v[0], v[1]));
        return add(sum(square(twice)), add(sum(square(v[0])), sum(square(v[1]))));
      },
      inputs);
}

TEST_CASE("multi_hot: a row without ones is the bias, and no rows give no gradient") {
  Tape<double> tape;
  const auto weight = tape.input(2, 3);
  std::fill_n(tape.mutable_value(weight).data, 6, 1.0);
  const std::vector<int> nowhere{-1, -1};
  const auto y = linear(MultiHot{nowhere, 2}, weight, tape.constant(1, 2, 5.0));
  CHECK(y.rows() == 1);
  CHECK(y.value()(0, 1) == 5.0);
  tape.backward(sum(y));
  for (int i = 0; i < 6; ++i) CHECK(tape.gradient(weight).data[i] == 0);
  CHECK(linear(MultiHot{{}, 2}, weight).rows() == 0);
}

TEST_CASE("multi_hot: places must be columns, and fill rows") {
  Tape<double> tape;
  const auto weight = tape.constant(2, 3);
  const std::vector<int> places{0, 3};
  CHECK_THROWS_AS(linear(MultiHot{places, 1}, weight), Bug);
  CHECK_THROWS_AS(linear(MultiHot{std::span(places).first(1), 2}, weight), Bug);
  CHECK_THROWS_AS(linear(MultiHot{std::span(places).first(1), 1}, weight, tape.constant(1, 3)), Bug);
}

}  // namespace hardgrad::testing::multi_hot_test
