#include "core/autodiff/elementwise.hpp"

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::division_test {

TEST_CASE("quotients entry by entry and by row, also of a matrix with itself") {
  for (auto [r, c] : {std::pair<std::size_t, std::size_t>{1, 1}, {1, 7}, {5, 1}, {3, 19}}) {
    const std::vector<Matrix> ab{random_matrix(r, c, 1), random_matrix(r, c, 2, 0.4, 2)};
    expect_gradient([](auto&, const auto& x) { return divide(x[0], x[1]); }, ab);
    expect_gradient([](auto&, const auto& x) { return divide(x[0], affine(x[1], {-1.f})); }, ab);
    expect_gradient([](auto&, const auto& x) { return divide(x[1], add(x[1], square(x[1]))); }, ab);
    expect_gradient([](auto&, const auto& x) { return divide_rows(x[0], x[1]); }, {ab[0], random_matrix(r, 1, 3, 0.4, 2)});
    expect_gradient([](auto&, const auto& x) { return divide(x[1], x[1]); }, ab);
  }
  Tape<double> tape;
  const auto x = place(tape, {shaped<double>({2, 2}, {1, 2, 3, 4}), shaped<double>({2, 1}, {2, -8})});
  const auto y = divide_rows(x[0], x[1]).value();
  CHECK(std::vector<double>(y.data, y.data + 4) == std::vector<double>{0.5, 1, -0.375, -0.5});
}

TEST_CASE("an unused entry takes no gradient, even if it is divided by 0") {
  Tape<double> tape;
  const auto x = place(tape, {shaped<double>({1, 2}, {1, 3}), shaped<double>({1, 2}, {0, 2})});
  const auto y = divide(x[0], x[1]);
  const std::vector<double> cotangent{0, 1};
  tape.backward(y, {cotangent.data(), 1, 2});
  CHECK(std::isinf(y.value().data[0]));
  CHECK(tape.gradient(x[0]).data[0] == 0);
  CHECK(tape.gradient(x[1]).data[0] == 0);
  CHECK(tape.gradient(x[1]).data[1] == -0.75);
}

TEST_CASE("division: shapes that do not fit are rejected") {
  Tape<double> tape;
  const auto a = tape.constant(2, 3, 1), b = tape.constant(3, 2, 1);
  CHECK_THROWS_AS(divide(a, b), Bug);
  CHECK_THROWS_AS(divide_rows(a, b), Bug);
}

}  // namespace hardgrad::testing::division_test
