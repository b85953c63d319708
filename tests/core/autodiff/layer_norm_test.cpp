#include "core/autodiff/regularisation.hpp"

#include "core/autodiff/elementwise.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::layer_norm_test {

TEST_CASE("layer_norm: gradients of rows, gain and bias") {
  for (auto [r, c] : {std::pair<std::size_t, std::size_t>{1, 2}, {5, 3}, {3, 19}})
    expect_gradient([](auto&, const auto& x) { return layer_norm(x[0], x[1], x[2]); },
                    {random_matrix(r, c, 1), random_matrix(1, c, 2), random_matrix(1, c, 3)});
  expect_gradient(
      [](auto&, const auto& x) {
        const auto y = layer_norm(x[0], x[1], x[1]);
        return add(multiply(y, x[0]), layer_norm(y, x[1], x[2], 0.5));
      },
      {random_matrix(4, 6, 1), random_matrix(1, 6, 2), random_matrix(1, 6, 3)});
}

TEST_CASE("layer_norm equals its formula, and ignores the position and scale of a row") {
  Tape<double> tape;
  const auto x = place(tape, {shaped<double>({3, 2}, {1, 3, 1001, 1003, -10, 30}), shaped<double>({1, 2}, {2, 0.5}),
                              shaped<double>({1, 2}, {0.1, -0.1})});
  const auto y = layer_norm(x[0], x[1], x[2], 0.0).value();
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(y(r, 0) == doctest::Approx(-1.9).epsilon(1e-12));
    CHECK(y(r, 1) == doctest::Approx(0.4).epsilon(1e-12));
  }
  CHECK(layer_norm(x[0], x[1], x[2], 3.0).value()(0, 0) == doctest::Approx(0.1 - 2 * 0.5).epsilon(1e-12));
  const auto flat = layer_norm(tape.constant(1, 2, 7.0), x[1], x[2]).value();  // zero variance
  CHECK(flat(0, 0) == 0.1);
  CHECK_THROWS_AS(layer_norm(x[0], x[0], x[2]), Bug);
}

}  // namespace hardgrad::testing::layer_norm_test
