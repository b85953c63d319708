#include "core/autodiff/softmax.hpp"

#include <cmath>

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::sparsemax_test {

TEST_CASE("sparsemax: gradients, ragged options") {
  for (const std::vector<int>& options : {std::vector<int>{1}, {5}, {5, 1, 3}, {0, 5, 2, 5}})
    for (double spread : {0.2, 1.0, 4.0})
      expect_gradient([&](auto&, const auto& v) { return sparsemax(v[0], std::span<const int>(options)); },
                      {random_matrix(options.size(), 5, 7, -spread, spread)});
}

TEST_CASE("sparsemax is the nearest distribution: the projection's conditions hold, and known values are reproduced") {
  Tape<double> tape;
  const auto x = random_matrix(200, 6, 3, -1, 1);
  const std::vector<int> options(200, 5);
  const auto y = sparsemax(place(tape, {x})[0], std::span<const int>(options)).value();
  int zeros = 0;
  for (std::size_t r = 0; r < y.rows; ++r) {
    double total = 0, tau = 0;
    for (std::size_t j = 0; j < 5; ++j) {
      total += y(r, j);
      if (y(r, j) > 0) tau = x(r, j) - y(r, j);
    }
    CHECK(total == doctest::Approx(1).epsilon(1e-14));
    for (std::size_t j = 0; j < 5; ++j) {  // on the support x - y = tau, off it x <= tau
      if (y(r, j) > 0) CHECK(x(r, j) - y(r, j) == doctest::Approx(tau).epsilon(1e-13));
      if (y(r, j) == 0) CHECK(x(r, j) <= tau + 1e-14);
      zeros += y(r, j) == 0;
    }
    CHECK(y(r, 5) == 0);
  }
  CHECK(zeros > 100);
  const double two[] = {0.3, -0.1};  // (1 + x1 - x2) / 2
  CHECK(two[0] - sparsemax_threshold(two, 2) == doctest::Approx(0.7).epsilon(1e-14));
  const double far[] = {2, 0.5, -INFINITY};
  CHECK(sparsemax_threshold(far, 3) == 1);
  const double shown[] = {0.1, NAN};
  CHECK(std::isnan(sparsemax_threshold(shown, 2)));
}

}  // namespace hardgrad::testing::sparsemax_test
