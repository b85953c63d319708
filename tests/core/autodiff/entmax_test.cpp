#include "core/autodiff/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::entmax_test {

TEST_CASE("entmax: gradients, ragged options") {
  for (double alpha : {1.1, 1.5, 1.8, 2.0})
    for (const std::vector<int>& options : {std::vector<int>{1}, {5}, {5, 1, 3}, {0, 5, 2, 5}})
      for (double spread : {0.2, 1.0, 4.0})
        expect_gradient([&](auto&, const auto& v) { return entmax(v[0], std::span<const int>(options), alpha); },
                        {random_matrix(options.size(), 5, 7, -spread, spread)});
}

/// The weights of a row of options.
std::vector<double> weights(const std::vector<double>& x, double alpha) {
  const double tau = entmax_threshold(x.data(), x.size(), alpha);
  std::vector<double> p;
  for (double v : x) p.push_back(entmax_weight(v, tau, alpha));
  return p;
}

TEST_CASE("entmax maximises p x plus its Tsallis entropy, whose slope is the logit less a constant on the support") {
  int zeros = 0;
  for (double alpha : {1.05, 1.25, 1.5, 1.75, 2.0})
    for (int trial = 0; trial < 40; ++trial) {
      CAPTURE(alpha);
      const auto row = random_matrix(1, 6, 100 + trial, -2, 2);
      const std::vector<double> x(row.begin(), row.end());
      const auto p = weights(x, alpha);
      CHECK(std::accumulate(p.begin(), p.end(), 0.0) == doctest::Approx(1).epsilon(1e-13));
      // d/dp of sum (p - p^alpha) / (alpha (alpha - 1))
      const auto slope = [&](std::size_t i) { return x[i] - std::pow(p[i], alpha - 1) / (alpha - 1); };
      const auto largest = static_cast<std::size_t>(std::max_element(x.begin(), x.end()) - x.begin());
      for (std::size_t i = 0; i < 6; ++i) {
        if (p[i] > 0) CHECK(slope(i) == doctest::Approx(slope(largest)).epsilon(1e-11));
        if (p[i] == 0) CHECK(slope(i) <= slope(largest) + 1e-12);
        zeros += p[i] == 0;
      }
    }
  CHECK(zeros > 100);
}

TEST_CASE("entmax-1.5 of two options in closed form, softmax near alpha = 1, and extremes") {
  // p = u^2 and (u - (x1 - x2) / 2)^2 sum to 1
  for (double d : {-3.0, -1.9, -0.4, 0.0, 1.0, 1.999, 2.5}) {
    const double u = (d / 2 + std::sqrt(2 - d * d / 4)) / 2;
    const double first = d >= 2 ? 1 : d <= -2 ? 0 : u * u;
    CHECK(weights({d + 0.3, 0.3}, 1.5)[0] == doctest::Approx(first).epsilon(1e-13));
  }
  const auto near = weights({0.3, -0.7, 1.1}, 1 + 1e-6);
  const double sum = std::exp(0.3) + std::exp(-0.7) + std::exp(1.1);
  CHECK(near[0] == doctest::Approx(std::exp(0.3) / sum).epsilon(1e-5));
  CHECK(near[1] == doctest::Approx(std::exp(-0.7) / sum).epsilon(1e-5));
  CHECK(weights({-INFINITY, 0.2, -INFINITY}, 1.5) == std::vector<double>{0, 1, 0});
  CHECK(weights({-INFINITY, -INFINITY}, 1.5) == std::vector<double>{0, 0});
  CHECK(weights({1e9, -1e9}, 1.5) == std::vector<double>{1, 0});
  CHECK(std::isnan(weights({0.1, NAN}, 1.5)[0]));
}

TEST_CASE(
    "sparsemax, alpha = 2, is the nearest distribution: the projection's conditions hold, and known values are reproduced") {
  Tape<double> tape;
  const auto x = random_matrix(200, 6, 3, -1, 1);
  const std::vector<int> options(200, 5);
  const auto y = entmax(place(tape, {x})[0], std::span<const int>(options), 2).value();
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
  CHECK(two[0] - entmax_threshold(two, 2, 2) == doctest::Approx(0.7).epsilon(1e-14));
  const double far[] = {2, 0.5, -INFINITY};
  CHECK(entmax_threshold(far, 3, 2) == 1);
  const double shown[] = {0.1, NAN};
  CHECK(std::isnan(entmax_threshold(shown, 2, 2)));
}

}  // namespace hardgrad::testing::entmax_test
