#include "core/autodiff/elementwise.hpp"

#include <limits>

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::elementwise_test {
namespace {
const std::vector<std::pair<std::size_t, std::size_t>> shapes{{1, 1}, {1, 7}, {5, 1}, {3, 19}};
}

TEST_CASE("binary operations") {
  for (auto [r, c] : shapes) {
    const std::vector<Matrix> ab{random_matrix(r, c, 1), random_matrix(r, c, 2)};
    expect_gradient([](auto&, const auto& x) { return add(x[0], x[1]); }, ab);
    expect_gradient([](auto&, const auto& x) { return subtract(x[0], x[1]); }, ab);
    expect_gradient([](auto&, const auto& x) { return multiply(x[0], x[1]); }, ab);
    expect_gradient([](auto&, const auto& x) { return add_row(x[0], x[1]); }, {ab[0], random_matrix(1, c, 3)});
    expect_gradient([](auto&, const auto& x) { return scale_rows(x[0], x[1]); }, {ab[0], random_matrix(r, 1, 3)});
  }
}

TEST_CASE("binary operations of a matrix with itself, and of a result used twice") {
  const std::vector<Matrix> a{random_matrix(3, 5, 4)};
  expect_gradient([](auto&, const auto& x) { return add(x[0], x[0]); }, a);
  expect_gradient([](auto&, const auto& x) { return subtract(x[0], x[0]); }, a);
  expect_gradient([](auto&, const auto& x) { return multiply(x[0], x[0]); }, a);
  expect_gradient(
      [](auto&, const auto& x) {
        auto y = tanh(x[0]);
        return add(multiply(y, x[0]), multiply(square(y), sigmoid(y)));
      },
      a);
}

TEST_CASE("unary operations") {
  for (auto [r, c] : shapes) {
    const std::vector<Matrix> a{random_matrix(r, c, 5)}, positive{random_matrix(r, c, 6, 0.3, 2.5)};
    expect_gradient([](auto&, const auto& x) { return affine(x[0], {1.7f}, {-0.3f}); }, a);
    expect_gradient([](auto&, const auto& x) { return tanh(x[0]); }, a);
    expect_gradient([](auto&, const auto& x) { return sigmoid(x[0]); }, a);
    expect_gradient([](auto&, const auto& x) { return relu(x[0]); }, a);
    expect_gradient([](auto&, const auto& x) { return leaky_relu(x[0], {0.3f}); }, a);
    expect_gradient([](auto&, const auto& x) { return exp(x[0]); }, a);
    expect_gradient([](auto&, const auto& x) { return cos(x[0]); }, a);
    expect_gradient([](auto&, const auto& x) { return log(x[0]); }, positive);
    expect_gradient([](auto&, const auto& x) { return square(x[0]); }, a);
    expect_gradient([](auto&, const auto& x) { return softplus(x[0]); }, a);
  }
}

TEST_CASE("infinite log probabilities do not enter gradients") {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<Matrix> a{shaped<double>({1, 3}, {-inf, 0.5, -2})};
  expect_gradient([](auto&, const auto& x) { return exp(x[0]); }, a);
  expect_gradient([](auto&, const auto& x) { return affine(x[0], {0}, {2}); }, a);
  Tape<double> tape;
  auto x = place(tape, {shaped<double>({2, 1}, {0.0, 0.5})});
  auto y = log(x[0]);
  const std::vector<double> cotangent{0, 1};
  tape.backward(y, {cotangent.data(), 2, 1});
  CHECK(tape.gradient(x[0]).data[0] == 0);
  CHECK(tape.gradient(x[0]).data[1] == 2);
  tape.clear();  // a dead row of -inf with weight 0
  x = place(tape, {shaped<double>({2, 1}, {-inf, 0.5}), shaped<double>({2, 1}, {0, 3})});
  y = scale_rows(x[0], x[1]);
  CHECK(y.value().data[0] == 0);
  CHECK(y.value().data[1] == 1.5);
}

TEST_CASE("NaN is never hidden") {
  Tape<float> tape;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto x = tape.constant(1, 3, nan);
  for (auto y : {relu(x), leaky_relu(x, 0.3f), tanh(x), sigmoid(x), exp(x), cos(x), log(x), square(x), softplus(x), add(x, x)})
    for (int i = 0; i < 3; ++i) CHECK(std::isnan(y.value().data[i]));
}

TEST_CASE("softplus neither overflows nor loses precision") {
  Tape<double> tape;
  auto x = place(tape, {shaped<double>({1, 4}, {-800, -40, 0, 800})});
  const auto y = softplus(x[0]);
  const std::vector<double> expected{0, 4.248354255291589e-18, 0.6931471805599453, 800},
      slope{0, 4.248354255291589e-18, 0.5, 1};
  const std::vector<double> ones(4, 1.0);
  tape.backward(y, {ones.data(), 1, 4});
  for (int i = 0; i < 4; ++i) {
    CHECK(y.value().data[i] == doctest::Approx(expected[i]).epsilon(1e-14));
    CHECK(tape.gradient(x[0]).data[i] == doctest::Approx(slope[i]).epsilon(1e-14));
  }
}

TEST_CASE("shapes that do not fit are rejected") {
  Tape<double> tape;
  auto a = tape.constant(2, 3), b = tape.constant(3, 2);
  CHECK_THROWS_AS(add(a, b), Bug);
  CHECK_THROWS_AS(multiply(a, b), Bug);
  CHECK_THROWS_AS(add_row(a, b), Bug);
  CHECK_THROWS_AS(scale_rows(a, b), Bug);
}

TEST_CASE("affine_column: one column of a table, in rows") {
  for (std::size_t S : {1, 2, 3})
    for (std::size_t column = 0; column < S; ++column) {
      const auto x = random_matrix(6, S, S);
      const auto of_column = [&](auto&, const auto& v) { return affine_column(v[0], column, 3, {2}, {-1}); };
      expect_gradient(of_column, {x});
      Tape<double> tape;
      const auto y = of_column(tape, place(tape, {x}));
      CHECK(y.rows() == 2);
      for (std::size_t i = 0; i < 6; ++i) CHECK(y.value().data[i] == 2 * x(i, column) - 1);
      CHECK_THROWS_AS(affine_column(place(tape, {x})[0], S, 3, 1.0), Bug);
      CHECK_THROWS_AS(affine_column(place(tape, {x})[0], column, 4, 1.0), Bug);
    }
}

}  // namespace hardgrad::testing::elementwise_test
