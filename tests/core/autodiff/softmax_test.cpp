#include "core/autodiff/softmax.hpp"

#include <cmath>
#include <limits>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::softmax_test {
namespace {

struct Case {
  std::size_t cols;
  std::vector<int> options;
};
const std::vector<Case> cases{{1, {1}},       {2, {2, 2, 2}},    {2, {2, 1, 0}},     {5, {5}},
                              {5, {5, 1, 3}}, {5, {0, 5, 2, 5}}, {37, {37, 20, 16}}, {3000, {2999}}};

}  // namespace

TEST_CASE("log_softmax, probabilities, entropy: ragged options") {
  for (const auto& [cols, options] : cases) {
    if (cols > 100) continue;  // finite differences would be slow; the other test covers these
    const std::vector<Matrix> x{random_matrix(options.size(), cols, 1, -3, 3)};
    const std::span<const int> o(options);
    expect_gradient([&](auto&, const auto& v) { return log_softmax(v[0], o); }, x);
    expect_gradient([&](auto&, const auto& v) { return probabilities(log_softmax(v[0], o)); }, x);
    expect_gradient([&](auto&, const auto& v) { return entropy(log_softmax(v[0], o)); }, x);
    expect_gradient([](auto&, const auto& v) { return entropy(v[0]); }, x);
    expect_gradient([&](auto&, const auto& v) { return kl_divergence(log_softmax(v[0], o), log_softmax(v[1], o)); },
                    {x[0], random_matrix(options.size(), cols, 2)});
    expect_gradient([](auto&, const auto& v) { return kl_divergence(v[0], v[1]); },
                    {x[0], random_matrix(options.size(), cols, 2)});
    // One matrix as both arguments: its two cotangents add.
    expect_gradient([](auto&, const auto& v) { return kl_divergence(v[0], v[0]); }, x);
  }
}

TEST_CASE_TEMPLATE("log_softmax of many rows of few options is that of each row, with its gradient", T, float, double) {
  for (std::size_t S = 2; S <= 16; ++S) {
    const std::size_t rows = 150;
    const auto random = random_matrix(rows, S, static_cast<int>(S), -9, 9), of_y = random_matrix(rows, S, 77);
    std::vector<T> x(random.begin(), random.end()), g(of_y.begin(), of_y.end());
    const T nothing = -std::numeric_limits<T>::infinity();
    for (std::size_t j = 0; j < S; ++j) {
      x[3 * S + j] = 2;                          // equal
      x[5 * S + j] = nothing;                    // impossible
      x[7 * S + j] = j == 1 ? T{300} : T{-300};  // certain
      x[8 * S + j] = j > 0 ? nothing : T{1};
      x[9 * S + j] = static_cast<T>(j / 2);  // the largest twice
    }
    const auto run = [&](std::size_t first, std::size_t n) {
      Tape<T> tape;
      const auto v = tape.input(MatrixView<const T>{&x[first * S], n, S});
      const auto y = log_softmax(v, std::span<const int>(std::vector<int>(n, static_cast<int>(S))));
      tape.backward(y, MatrixView<const T>{&g[first * S], n, S});
      std::vector<T> result(y.value().data, y.value().data + n * S);
      const auto back = tape.gradient(v);
      result.insert(result.end(), back.data, back.data + n * S);
      return result;
    };
    const auto all = run(0, rows);
    std::size_t differ = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const auto one = run(r, 1);
      for (std::size_t j = 0; j < S; ++j) {
        const auto same = [](T a, T b) {  // but for rounding: tests have their own copies of inline functions
          constexpr T eps = std::numeric_limits<T>::epsilon();
          return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 8 * eps * (1 + std::abs(b));
        };
        differ += !same(all[r * S + j], one[j]);
        differ += !same(all[(rows + r) * S + j], one[S + j]);
      }
    }
    CHECK(differ == 0);
  }
}

TEST_CASE_TEMPLATE("log_softmax sums to one, and missing options are exactly zero", T, float, double) {
  for (const auto& [cols, options] : cases) {
    Tape<T> tape;
    const auto x = place(tape, {random_matrix(options.size(), cols, 3, -30, 30)})[0];
    const auto l = log_softmax(x, std::span<const int>(options));
    const auto p = probabilities(l).value();
    for (std::size_t r = 0; r < options.size(); ++r) {
      double total = 0;
      for (std::size_t j = 0; j < cols; ++j) {
        total += p(r, j);
        if (j < static_cast<std::size_t>(options[r])) continue;
        CHECK(l.value()(r, j) == -INFINITY);
        CHECK(p(r, j) == 0);
      }
      CHECK(total == doctest::Approx(options[r] > 0 ? 1 : 0).epsilon(40 * std::numeric_limits<T>::epsilon()));
    }
  }
}

TEST_CASE_TEMPLATE("the logarithm of a probability near 1 has full precision", T, float, double) {
  const double tolerance = 4 * std::numeric_limits<T>::epsilon();
  for (double phi : {12.0, 25.0, 34.0, 40.0, 60.0, 80.0})
    for (std::size_t options : {2, 5}) {  // of five, three are impossible
      CAPTURE(phi);
      Tape<T> tape;
      std::vector<double> logits(options, -INFINITY);
      logits[0] = 0;
      logits[options - 1] = phi;
      const std::vector<int> count{static_cast<int>(options)};
      const auto l = log_softmax(place(tape, {shaped<double>({1, options}, logits)})[0], std::span<const int>(count)).value();
      const double small = std::log1p(std::exp(-phi));
      CHECK(std::abs(l(0, options - 1) + small) < tolerance * small);
      CHECK(l(0, 0) == doctest::Approx(-phi - small).epsilon(tolerance));
    }
}

TEST_CASE("infinite logits: an impossible option, extreme differences") {
  const std::vector<int> options{3, 3};
  const std::span<const int> o(options);
  const std::vector<Matrix> x{shaped<double>({2, 3}, {-INFINITY, 0.3, -0.8, 900, -900, 899})};
  expect_gradient([&](auto&, const auto& v) { return log_softmax(v[0], o); }, x);
  expect_gradient([&](auto&, const auto& v) { return entropy(log_softmax(v[0], o)); }, x);
  const auto q = shaped<double>({2, 3}, {-INFINITY, 0.1, 0.2, 1, -INFINITY, 2});
  expect_gradient([&](auto&, const auto& v) { return kl_divergence(log_softmax(v[1], o), log_softmax(v[0], o)); }, {x[0], q});
  Tape<double> tape;
  const auto all = place(tape, {Matrix({1, 2}, -INFINITY)})[0];
  const auto l = log_softmax(all, std::span<const int>(std::vector<int>{2}));
  CHECK(l.value().data[0] == -INFINITY);
  CHECK_THROWS_AS(log_softmax(all, std::span<const int>(std::vector<int>{3})), Bug);
}

TEST_CASE_TEMPLATE("many rows of two options have the same values and gradients as within three columns", T, float, double) {
  constexpr std::size_t rows = 1300;  // more than one batch of rows, and not a multiple of a register
  auto pairs = random_matrix(rows, 2, 5, -9, 9), three = Matrix({rows, 3}, 0.5);
  pairs.flat(7) = pairs.flat(1500) = pairs.flat(2000) = -INFINITY;
  for (std::size_t i = 0; i < 2 * rows; ++i) three(i / 2, i % 2) = pairs.flat(i);
  const std::vector<int> options(rows, 2);
  const auto log_p = [&](auto&, const auto& v) {
    return slice_columns(log_softmax(v[0], std::span<const int>(options)), 0, 2);
  };
  const auto twice = [&](auto& tape, const auto& v) {  // the second cotangent is added
    return add(log_p(tape, v), affine(log_p(tape, v), decltype(v[0].item()){2}));
  };
  const auto same = [](const auto& two, const auto& of_three) {
    const double tolerance = 8 * std::numeric_limits<T>::epsilon();
    int seen = 0;
    for (std::size_t i = 0; i < 2 * rows; ++i, ++seen) {
      const double a = two.first[i], b = of_three.first[i], g = two.second[i], h = of_three.second[i / 2 * 3 + i % 2];
      if (!(a == b || std::abs(a - b) <= tolerance * std::abs(b))) FAIL_CHECK(i << ": " << a << ", not " << b);
      if (!(std::abs(g - h) <= tolerance)) FAIL_CHECK("gradient " << i << ": " << g << ", not " << h);
    }
    CHECK(seen == 2600);
  };
  same(evaluate<T>(log_p, {pairs}), evaluate<T>(log_p, {three}));
  same(evaluate<T>(twice, {pairs}), evaluate<T>(twice, {three}));
}

TEST_CASE("NaN logits give NaN") {
  Tape<float> tape;
  for (std::size_t cols : {2, 3, 40}) {
    std::vector<float> x(cols, 0.5f);
    x[1] = NAN;
    const int n = static_cast<int>(cols);
    const auto l = log_softmax(tape.constant({x.data(), 1, cols}), std::span<const int>(&n, 1));
    CHECK(std::isnan(l.value().data[0]));
  }
}

}  // namespace hardgrad::testing::softmax_test
