// The vector functions against <cmath>, including limits. The place of a number in an array must not matter.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/kernels/functions.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad::testing::functions_test {
namespace {

template <class T>
std::vector<T> sweep() {
  std::vector<T> x;
  for (int i = -2000; i <= 2000; ++i) x.push_back(static_cast<T>(i * 0.0213));
  for (int e = -30; e < 3; ++e) x.push_back(static_cast<T>(std::ldexp(1.3, e)));
  return x;
}

template <class T, class F, class G>
double worst(F fast, G exact, bool relative) {
  auto x = sweep<T>(), y = x;
  kernels::map(x.data(), y.data(), x.size(), fast);
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = exact(static_cast<double>(x[i]));
    error = std::max(error, std::abs(y[i] - e) / (relative ? std::max(std::abs(e), 1e-30) : 1.0));
  }
  return error;
}

}  // namespace

TEST_CASE_TEMPLATE("vector functions are as accurate as T allows", T, float, double) {
  using B = kernels::Batch<T>;
  const double eps = std::numeric_limits<T>::epsilon();
  CHECK(worst<T>([](const B& x) { return kernels::exp<T>(x); }, [](double x) { return std::exp(x); }, true) < 2 * eps);
  CHECK(worst<T>([](const B& x) { return kernels::tanh<T>(x); }, [](double x) { return std::tanh(x); }, true) < 4 * eps);
  CHECK(worst<T>([](const B& x) { return kernels::sigmoid<T>(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }, true) <
        4 * eps);
  // Maps the sweep's numbers into [0, 1]: their distance to the next whole number.
  const auto part = [](double x) { return std::abs(x - std::round(x)) * 2; };
  std::vector<T> x = sweep<T>(), y = x;
  for (T& v : x) v = static_cast<T>(part(v));
  kernels::map(x.data(), y.data(), x.size(), [](const B& v) { return kernels::log1p_unit<T>(v); });
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = std::log1p(static_cast<double>(x[i]));
    error = std::max(error, e == 0 ? std::abs(static_cast<double>(y[i])) : std::abs(y[i] / e - 1));
  }
  CHECK(error < 2 * eps);
  T ends[] = {T{0}, T{1}, std::numeric_limits<T>::quiet_NaN()};
  kernels::map(ends, ends, 3, [](const B& v) { return kernels::log1p_unit<T>(v); });
  CHECK(ends[0] == 0);
  CHECK(ends[1] == doctest::Approx(std::log(2.0)).epsilon(2 * eps));
  CHECK(std::isnan(ends[2]));
}

TEST_CASE_TEMPLATE("vector functions at the limits", T, float, double) {
  using B = kernels::Batch<T>;
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{-inf, inf, nan, 0, T(-1e4), T(1e4)};
  std::vector<T> y(x.size());
  kernels::map(x.data(), y.data(), x.size(), [](const B& v) { return kernels::exp<T>(v); });
  CHECK(y[0] == 0);
  CHECK(y[1] == inf);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == 1);
  CHECK(y[4] == 0);
  CHECK(y[5] == inf);
  kernels::map(x.data(), y.data(), x.size(), [](const B& v) { return kernels::tanh<T>(v); });
  CHECK(y[0] == -1);
  CHECK(y[1] == 1);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == 0);
  CHECK(y[4] == -1);
  CHECK(y[5] == 1);
  kernels::map(x.data(), y.data(), x.size(), [](const B& v) { return kernels::sigmoid<T>(v); });
  CHECK(y[0] == 0);
  CHECK(y[1] == 1);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == T(0.5));
  CHECK(y[4] == 0);
  CHECK(y[5] == 1);
}

TEST_CASE_TEMPLATE("a number's result does not depend on its place", T, float, double) {
  const auto x = sweep<T>();
  std::vector<T> all(x.size()), one(1);
  const auto f = [](const kernels::Batch<T>& v) { return kernels::tanh<T>(v); };
  kernels::map(x.data(), all.data(), x.size(), f);
  for (std::size_t i = 0; i < x.size(); i += 37) {
    kernels::map(x.data() + i, one.data(), 1, f);
    CHECK(one[0] == all[i]);
  }
}

TEST_CASE_TEMPLATE("lanes change and add up each number once", T, float, double) {
  for (std::size_t n = 1; n < 5 * kernels::width<T>; ++n) {
    std::vector<T> x(n + 2, T{1});  // numbers before and after stay as they are
    std::iota(x.begin() + 1, x.end() - 1, T{2});
    kernels::map(x.data() + 1, x.data() + 1, n, [](const kernels::Batch<T>& v) { return v + v; });
    kernels::Batch<T> sums(T{0});
    kernels::for_lanes<T>(n, [&](auto lane) { sums += lane.load_own(x.data() + 1); });
    CHECK(kernels::lane_sum(sums) == static_cast<T>(n * (n + 3)));
    for (std::size_t i = 1; i <= n; ++i) CHECK(x[i] == static_cast<T>(2 * (i + 1)));
    CHECK(x[0] == 1);
    CHECK(x[n + 1] == 1);
  }
}

TEST_CASE("find: the first of equal numbers at any place, or the length if there is none") {
  for (std::size_t n = 1; n < 200; n += 3) {
    std::vector<float> x(n, 1.0f);
    CHECK(kernels::find(x.data(), n, 2.0f) == n);
    for (std::size_t at = n; at-- > 0;) {
      x[at] = 2;
      CHECK(kernels::find(x.data(), n, 2.0f) == at);
    }
    CHECK(kernels::find(x.data(), n, NAN) == n);
  }
}

TEST_CASE_TEMPLATE("row reductions of every length", T, float, double) {
  for (std::size_t n = 1; n < 70; ++n) {
    std::vector<T> x(n), y(n);
    double sum = 0, dot = 0, most = -10;
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = static_cast<T>(std::sin(1.0 + 2.1 * static_cast<double>(i)));
      y[i] = static_cast<T>(std::cos(0.7 * static_cast<double>(i)));
      sum += x[i];
      dot += static_cast<double>(x[i]) * y[i];
      most = std::max<double>(most, x[i]);
    }
    CHECK(kernels::row_max(x.data(), n) == static_cast<T>(most));
    CHECK(kernels::row_sum(x.data(), n) == doctest::Approx(sum).epsilon(1e-12));
    CHECK(kernels::dot(x.data(), y.data(), n) == doctest::Approx(dot).epsilon(1e-5));
  }
}

}  // namespace hardgrad::testing::functions_test
