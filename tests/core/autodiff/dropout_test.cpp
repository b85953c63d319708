#include "core/autodiff/regularisation.hpp"

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::dropout_test {
namespace {
std::vector<Draw> places(std::size_t rows) {
  std::vector<Draw> all(rows);
  for (std::size_t r = 0; r < rows; ++r) all[r] = {.example = static_cast<std::uint32_t>(100 + r / 2), .step = 3};
  return all;
}
}  // namespace

TEST_CASE("dropout: the gradient has the same mask as the value") {
  for (double rate : {0.0, 0.3, 0.8}) {
    const auto place = places(5);
    expect_gradient([&](auto&, const auto& x) { return dropout(x[0], rate, Key(1), std::span(place)); },
                    {random_matrix(5, 19, 1)});
  }
}

TEST_CASE("dropout: every entry is dropped at the given rate, and the mean is unchanged") {
  const std::size_t rows = 2000, cols = 20;
  std::vector<Draw> place(rows);
  for (std::size_t r = 0; r < rows; ++r) place[r].example = static_cast<std::uint32_t>(r);
  Tape<double> tape;
  const auto y = dropout(tape.constant(rows, cols, 2.0), 0.3, Key(4), std::span(place)).value();
  for (std::size_t j = 0; j < cols; ++j) {  // 5 standard errors of a share of 0.3: sqrt(0.21 / 2000)
    double left_out = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      left_out += y(r, j) == 0;
      if (y(r, j) != 0) CHECK(y(r, j) == doctest::Approx(2 / 0.7).epsilon(1e-14));
    }
    CHECK(std::abs(left_out / rows - 0.3) < 0.052);
  }
}

TEST_CASE("dropout: the mask of a row depends only on its place") {
  Tape<double> tape;
  const auto ones = [&](std::size_t rows) { return tape.constant(rows, 40, 1.0); };
  const auto row = [](Var<double> y, std::size_t r) { return std::vector<double>(y.value().row(r), y.value().row(r) + 40); };
  const auto place = places(6);
  const auto y = dropout(ones(6), 0.5, Key(1), std::span(place));
  CHECK(row(y, 0) == row(y, 1));  // the same place
  CHECK(row(y, 0) != row(y, 2));
  const std::vector<Draw> reversed(place.rbegin(), place.rend());
  const auto z = dropout(ones(6), 0.5, Key(1), std::span(reversed));
  for (std::size_t r = 0; r < 6; ++r) CHECK(row(z, r) == row(y, 5 - r));
  CHECK(row(dropout(ones(6), 0.5, Key(2), std::span(place)), 0) != row(y, 0));
  auto later = place[0];
  later.step = 4;
  CHECK(row(dropout(ones(1), 0.5, Key(1), std::span(&later, 1)), 0) != row(y, 0));
}

TEST_CASE("dropout: a dropped entry is 0 whatever its value, and rates that keep nothing are rejected") {
  Tape<double> tape;
  const auto place = places(4);
  const auto y = dropout(tape.constant(4, 30, INFINITY), 0.5, Key(1), std::span(place)).value();
  int zeros = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    CHECK((y.data[i] == 0 || std::isinf(y.data[i])));
    zeros += y.data[i] == 0;
  }
  CHECK(zeros > 0);
  const auto x = tape.constant(4, 2, 1.0);
  CHECK_THROWS_AS(dropout(x, 1.0, Key(1), std::span(place)), Bug);
  CHECK_THROWS_AS(dropout(x, -0.1, Key(1), std::span(place)), Bug);
  CHECK_THROWS_AS(dropout(x, 0.5, Key(1), std::span(place).first(3)), Bug);
}

}  // namespace hardgrad::testing::dropout_test
