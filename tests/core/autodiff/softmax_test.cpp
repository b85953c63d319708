#include "core/autodiff/softmax.hpp"

#include <limits>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "tests/support/gradient_check.hpp"

using namespace hardgrad;
using namespace hardgrad::testing;

namespace {

struct Case {
  std::size_t cols;
  std::vector<int> options;
};
const std::vector<Case> cases{{1, {1}},          {5, {5}},           {5, {5, 1, 3}},
                              {5, {0, 5, 2, 5}}, {37, {37, 20, 16}}, {3000, {2999}}};

}  // namespace

TEST_CASE("log_softmax, probabilities, entropy: ragged options") {
  for (const auto& [cols, options] : cases) {
    if (cols > 100) continue;  // finite differences would take long; the other test sees these
    const std::vector<Matrix> x{random_matrix(options.size(), cols, 1, -3, 3)};
    const std::span<const int> o(options);
    expect_gradient([&](auto&, const auto& v) { return log_softmax(v[0], o); }, x);
    expect_gradient([&](auto&, const auto& v) { return probabilities(log_softmax(v[0], o)); }, x);
    expect_gradient([&](auto&, const auto& v) { return entropy(log_softmax(v[0], o)); }, x);
    expect_gradient([](auto&, const auto& v) { return entropy(v[0]); }, x);
    expect_gradient(
        [&](auto&, const auto& v) { return kl_divergence(log_softmax(v[0], o), log_softmax(v[1], o)); },
        {x[0], random_matrix(options.size(), cols, 2)});
    expect_gradient([](auto&, const auto& v) { return kl_divergence(v[0], v[1]); },
                    {x[0], random_matrix(options.size(), cols, 2)});
    // One matrix as both: its two cotangents meet.
    expect_gradient([](auto&, const auto& v) { return kl_divergence(v[0], v[0]); }, x);
  }
}

TEST_CASE_TEMPLATE("log_softmax sums to one and what is no option is exactly nothing", T, float, double) {
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

TEST_CASE("infinite logits: an impossible option, extreme differences") {
  const std::vector<int> options{3, 3};
  const std::span<const int> o(options);
  const std::vector<Matrix> x{Matrix({2, 3}, std::vector<double>{-INFINITY, 0.3, -0.8, 900, -900, 899})};
  expect_gradient([&](auto&, const auto& v) { return log_softmax(v[0], o); }, x);
  expect_gradient([&](auto&, const auto& v) { return entropy(log_softmax(v[0], o)); }, x);
  const auto q = Matrix({2, 3}, std::vector<double>{-INFINITY, 0.1, 0.2, 1, -INFINITY, 2});
  expect_gradient(
      [&](auto&, const auto& v) { return kl_divergence(log_softmax(v[1], o), log_softmax(v[0], o)); },
      {x[0], q});
  Tape<double> tape;
  const auto all = place(tape, {Matrix({1, 2}, -INFINITY)})[0];
  const auto l = log_softmax(all, std::span<const int>(std::vector<int>{2}));
  CHECK(l.value().data[0] == -INFINITY);
  CHECK_THROWS_AS(log_softmax(all, std::span<const int>(std::vector<int>{3})), Bug);
}

TEST_CASE("NaN logits give NaN") {
  Tape<float> tape;
  for (std::size_t cols : {3, 40}) {
    std::vector<float> x(cols, 0.5f);
    x[1] = NAN;
    const int n = static_cast<int>(cols);
    const auto l = log_softmax(tape.constant({x.data(), 1, cols}), std::span<const int>(&n, 1));
    CHECK(std::isnan(l.value().data[0]));
  }
}

TEST_CASE("linear_cross_entropy: with and without bias, dead rows, one row") {
  for (const std::vector<int>& label : {std::vector<int>{2}, {-1}, {0, 4, -1, 2, 2, -1, 1}}) {
    const std::span<const int> y(label);
    const auto x = random_matrix(label.size(), 3, 1), w = random_matrix(5, 3, 2), b = random_matrix(1, 5, 3);
    expect_gradient([&](auto&, const auto& v) { return linear_cross_entropy(v[0], v[1], v[2], y).loss; },
                    {x, w, b});
    expect_gradient(
        [&](auto&, const auto& v) {
          using V = std::decay_t<decltype(v[0])>;
          return linear_cross_entropy(v[0], v[1], V{}, y).loss;
        },
        {x, w});
    // Everything used elsewhere too: its cotangents add to others.
    expect_gradient(
        [&](auto&, const auto& v) {
          return add(linear_cross_entropy(v[0], v[1], v[2], y).loss,
                     slice_columns(linear(v[0], v[1], v[2]), 1, 1));
        },
        {x, w, b});
  }
  Tape<double> tape;
  const std::vector<int> bad{5};
  CHECK_THROWS_AS(
      linear_cross_entropy(tape.constant(1, 3), tape.constant(5, 3), {}, std::span<const int>(bad)), Bug);
}

namespace {

/// Loss and gradients of the fused loss and of the same from single operations, with many rows.
void compare_with_parts(std::size_t rows, std::size_t inner, std::size_t classes) {
  std::vector<int> label(rows), each(rows), options(rows, static_cast<int>(classes));
  for (std::size_t r = 0; r < rows; ++r) {
    each[r] = static_cast<int>(r);
    label[r] = r % 7 == 3 ? -1 : static_cast<int>((r * 31) % classes);
  }
  const std::vector<Matrix> inputs{random_matrix(rows, inner, 1), random_matrix(classes, inner, 2),
                                   random_matrix(1, classes, 3)};
  auto fused = [&](auto&, const auto& v) {
    return linear_cross_entropy(v[0], v[1], v[2], std::span<const int>(label)).loss;
  };
  auto parts = [&](auto& tape, const auto& v) {
    auto l = log_softmax(linear(v[0], v[1], v[2]), std::span<const int>(options));
    std::vector<int> column(label);
    for (int& c : column) c = std::max(c, 0);
    using T = Number<decltype(tape)>;
    std::vector<T> live(rows);
    for (std::size_t r = 0; r < rows; ++r) live[r] = label[r] < 0 ? 0 : -1;
    return multiply(pick(l, std::span<const int>(each), std::span<const int>(column)),
                    tape.constant({live.data(), rows, 1}));
  };
  const auto a = evaluate<double>(fused, inputs), b = evaluate<double>(parts, inputs);
  double worst = 0;
  for (std::size_t i = 0; i < a.first.size(); ++i) worst = std::max(worst, std::abs(a.first[i] - b.first[i]));
  for (std::size_t i = 0; i < a.second.size(); ++i)
    worst = std::max(worst, std::abs(a.second[i] - b.second[i]));
  CHECK(worst < 1e-10);
  const auto rounding = precision_error(fused, inputs, 1e-4);
  CHECK_MESSAGE(rounding.empty(), rounding);
}

}  // namespace

TEST_CASE("linear_cross_entropy over several chunks equals its parts") {
  compare_with_parts(512, 3, 4);
  compare_with_parts(1500, 3, 17);
}

TEST_CASE("linear_cross_entropy beyond what it keeps recomputes the same") {
  compare_with_parts(1100, 2, 20000);  // in double 512 rows are kept, the other 588 recomputed
}

TEST_CASE("linear_cross_entropy names the most probable class, of dead rows too") {
  Tape<float> tape;
  const std::vector<float> x{1, 0, 0, 1, 1, 1}, w{0, 0, 2, 1, 1, 3, -4, 0};
  const std::vector<int> label{0, -1, 3};
  const auto result = linear_cross_entropy(tape.constant({x.data(), 3, 2}), tape.constant({w.data(), 4, 2}),
                                           {}, std::span<const int>(label));
  CHECK(result.label == std::vector<int>{1, 2, 2});
  CHECK(result.loss.value().data[1] == 0);
}
