#include "core/autodiff/cross_entropy.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::cross_entropy_test {

TEST_CASE("linear_cross_entropy: with and without bias, dead rows, one row") {
  for (const std::vector<int>& label : {std::vector<int>{2}, {-1}, {0, 4, -1, 2, 2, -1, 1}}) {
    const std::span<const int> y(label);
    const auto x = random_matrix(label.size(), 3, 1), w = random_matrix(5, 3, 2), b = random_matrix(1, 5, 3);
    expect_gradient([&](auto&, const auto& v) { return linear_cross_entropy(v[0], v[1], v[2], y).loss; }, {x, w, b});
    expect_gradient(
        [&](auto&, const auto& v) {
          using V = std::decay_t<decltype(v[0])>;
          return linear_cross_entropy(v[0], v[1], V{}, y).loss;
        },
        {x, w});
    // With a second use of each input: cotangents add.
    expect_gradient(
        [&](auto&, const auto& v) {
          return add(linear_cross_entropy(v[0], v[1], v[2], y).loss, slice_columns(linear(v[0], v[1], v[2]), 1, 1));
        },
        {x, w, b});
  }
  Tape<double> tape;
  const std::vector<int> bad{5};
  CHECK_THROWS_AS(linear_cross_entropy(tape.constant(1, 3), tape.constant(5, 3), {}, std::span<const int>(bad)), Bug);
}

namespace {

/// Loss and gradients of the fused operation, and of the same loss built from single operations, with many rows.
void compare_with_parts(std::size_t rows, std::size_t inner, std::size_t classes) {
  std::vector<int> label(rows), each(rows), options(rows, static_cast<int>(classes));
  for (std::size_t r = 0; r < rows; ++r) {
    each[r] = static_cast<int>(r);
    label[r] = r % 7 == 3 ? -1 : static_cast<int>((r * 31) % classes);
  }
  const std::vector<Matrix> inputs{random_matrix(rows, inner, 1), random_matrix(classes, inner, 2),
                                   random_matrix(1, classes, 3)};
  auto fused = [&](auto&, const auto& v) { return linear_cross_entropy(v[0], v[1], v[2], std::span<const int>(label)).loss; };
  auto parts = [&](auto& tape, const auto& v) {
    auto l = log_softmax(linear(v[0], v[1], v[2]), std::span<const int>(options));
    std::vector<int> column(label);
    for (int& c : column) c = std::max(c, 0);
    using T = Number<decltype(tape)>;
    std::vector<T> live(rows);
    for (std::size_t r = 0; r < rows; ++r) live[r] = label[r] < 0 ? 0 : -1;
    return multiply(pick(l, std::span<const int>(each), std::span<const int>(column)), tape.constant({live.data(), rows, 1}));
  };
  const auto a = evaluate<double>(fused, inputs), b = evaluate<double>(parts, inputs);
  double worst = 0;
  for (std::size_t i = 0; i < a.first.size(); ++i) worst = std::max(worst, std::abs(a.first[i] - b.first[i]));
  for (std::size_t i = 0; i < a.second.size(); ++i) worst = std::max(worst, std::abs(a.second[i] - b.second[i]));
  CHECK(worst < 1e-10);
  const auto rounding = precision_error(fused, inputs, 1e-4);
  CHECK_MESSAGE(rounding.empty(), rounding);
}

}  // namespace

TEST_CASE("linear_cross_entropy over several chunks equals its parts") {
  compare_with_parts(512, 3, 4);
  compare_with_parts(512, 7, 4);  // fewer classes than columns
  compare_with_parts(1500, 3, 17);
  compare_with_parts(37, 3, 15);  // the most classes whose rows are processed side by side
  compare_with_parts(37, 3, 16);
  compare_with_parts(37, 3, 1);
}

TEST_CASE("linear_cross_entropy beyond its memory limit recomputes the same values") {
  compare_with_parts(1700, 2, 20000);  // in double 1536 rows are kept, the others are recomputed
}

TEST_CASE("cross_entropy of logits: value, gradient and most probable class of every row") {
  int visited = 0;
  for (std::size_t rows : {1, 16, 21})
    for (std::size_t classes : {1, 6, 15, 16, 33}) {
      std::vector<int> label(rows);
      for (std::size_t r = 0; r < rows; ++r) label[r] = r % 4 == 1 ? -1 : static_cast<int>(r * 7 % classes);
      const auto x = random_matrix(rows, classes, rows + classes);
      const std::span<const int> y(label);
      expect_gradient([&](auto&, const auto& v) { return cross_entropy(v[0], y).loss; }, {x});
      expect_gradient([&](auto&, const auto& v) { return add(cross_entropy(v[0], y).loss, slice_columns(v[0], 0, 1)); }, {x});
      Tape<double> tape;
      const auto result = cross_entropy(place(tape, {x})[0], y);
      for (std::size_t r = 0; r < rows; ++r, ++visited) {
        const double* row = &x(r, 0);
        double total = 0;
        for (std::size_t j = 0; j < classes; ++j) total += std::exp(row[j]);
        CHECK(result.loss.value().data[r] == doctest::Approx(label[r] < 0 ? 0 : std::log(total) - row[label[r]]));
        CHECK(result.label[r] == std::max_element(row, row + classes) - row);
      }
    }
  CHECK(visited == 38 * 5);
  Tape<double> tape;
  const std::vector<int> bad{5};
  CHECK_THROWS_AS(cross_entropy(tape.constant(1, 5), std::span<const int>(bad)), Bug);
}

TEST_CASE("linear_cross_entropy names the most probable class, also for dead rows") {
  Tape<float> tape;
  const std::vector<float> x{1, 0, 0, 1, 1, 1}, w{0, 0, 2, 1, 1, 3, -4, 0};
  const std::vector<int> label{0, -1, 3};
  const auto result =
      linear_cross_entropy(tape.constant({x.data(), 3, 2}), tape.constant({w.data(), 4, 2}), {}, std::span<const int>(label));
  CHECK(result.label == std::vector<int>{1, 2, 2});
  CHECK(result.loss.value().data[1] == 0);
}

namespace {

struct Run {
  std::vector<double> loss, gradient;
  std::size_t bytes = 0;
};
/// Loss and gradients of x, W and b for the losses' cotangents `cotangent`; `expected` is the hint.
template <class T>
Run with_expected(std::size_t rows, std::size_t classes, const std::vector<double>& cotangent,
                  const std::vector<double>& expected, bool leaves = false, const std::vector<int>& group = {}) {
  Tape<T> tape;
  const auto v = place(tape, {random_matrix(rows, 5, 1), random_matrix(classes, 5, 2), random_matrix(1, classes, 3)});
  std::vector<int> label(rows);
  for (std::size_t r = 0; r < rows; ++r) label[r] = r % 5 == 4 ? -1 : static_cast<int>(r * 13 % classes);
  const auto loss = linear_cross_entropy(v[0], v[1], v[2], std::span<const int>(label), {expected, group}).loss;
  // With a second use of each input: cotangents add.
  const auto total = add(weighted_sum(loss, std::span<const double>(cotangent)), add(sum(v[0]), add(sum(v[1]), sum(v[2]))));
  leaves ? tape.backward_to_leaves(total) : tape.backward(total);
  Run run;
  run.loss.assign(loss.value().data, loss.value().data + rows);
  for (auto x : v) {
    const auto g = tape.gradient(x);
    run.gradient.insert(run.gradient.end(), g.data, g.data + g.size());
  }
  run.bytes = tape.arena().used();
  return run;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return a.size() == b.size() ? worst : INFINITY;
}

}  // namespace

TEST_CASE_TEMPLATE("expected cotangents: the same gradients, computed in one pass", T, float, double) {
  const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;
  for (std::size_t rows : {1, 7, 512, 1300}) {
    std::vector<double> expected(rows), cotangent(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      expected[r] = static_cast<double>(r % 4) / 8.0 + (rows == 1);  // some are 0
      cotangent[r] = -3 * expected[r];
    }
    for (std::size_t classes : {40, 4}) {
      const auto plain = with_expected<T>(rows, classes, cotangent, {});
      const auto formed = with_expected<T>(rows, classes, cotangent, expected);
      CHECK(plain.loss == formed.loss);
      CHECK(distance(plain.gradient, formed.gradient) < tolerance * 3);
      CHECK(formed.gradient == with_expected<T>(rows, classes, cotangent, expected).gradient);
      CHECK(formed.gradient == with_expected<T>(rows, classes, cotangent, expected, true).gradient);
      CHECK((rows < 1300 || classes < 40 || formed.bytes < plain.bytes));
    }
  }
}

TEST_CASE_TEMPLATE("wrongly expected cotangents are detected, and the gradient is right", T, float, double) {
  const std::size_t rows = 700;
  std::vector<double> even(rows, 1.0 / rows), uneven(even), zero(rows, 0.0), broken(even);
  uneven[650] *= 1.01;
  broken[3] = NAN;
  const double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-13;
  // Expected and true cotangents differ in one row; a row has no expectation; a row with an expectation gets no cotangent.
  const std::vector<std::pair<std::vector<double>, std::vector<double>>> cases{
      {even, uneven}, {uneven, even}, {zero, even}, {even, zero}};
  for (const auto& [expected, cotangent] : cases) {
    const auto plain = with_expected<T>(rows, 40, cotangent, {}), formed = with_expected<T>(rows, 40, cotangent, expected);
    CHECK(distance(plain.gradient, formed.gradient) < tolerance);
  }
  CHECK(std::isnan(with_expected<T>(rows, 40, broken, even).gradient[3 * 5]));
  Tape<T> tape;
  const std::vector<int> label{0, 1};
  const std::vector<double> one{1};
  CHECK_THROWS_AS(linear_cross_entropy(tape.constant(2, 3), tape.constant(5, 3), {}, std::span<const int>(label), {one, {}}),
                  Bug);
  CHECK_THROWS_AS(
      linear_cross_entropy(tape.constant(1, 3), tape.constant(5, 3), {}, std::span<const int>(label).first(1), {one, label}),
      Bug);
}

TEST_CASE_TEMPLATE("cotangents expected in proportion to the losses' shares within groups", T, float, double) {
  const std::size_t rows = 1300;
  std::vector<int> group(rows);
  std::vector<double> prior(rows), posterior(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    group[r] = r < 600 ? static_cast<int>(r) / 7 : r < 950 ? 100 : 101 + static_cast<int>(r) / 50;  // one group exceeds a chunk
    prior[r] = static_cast<double>(r % 4) / 8.0;
  }
  const auto loss = with_expected<T>(rows, 40, prior, {}).loss;
  for (std::size_t from = 0, to; from < rows; from = to) {
    double weight = 0, total = 0;
    for (to = from; to < rows && group[to] == group[from]; ++to) {
      weight += prior[to];
      total += prior[to] * std::exp(-loss[to]);
    }
    for (std::size_t r = from; r < to; ++r) posterior[r] = weight * prior[r] * std::exp(-loss[r]) / total;
  }
  const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;
  const auto plain = with_expected<T>(rows, 40, posterior, {}),
             formed = with_expected<T>(rows, 40, posterior, prior, false, group);
  CHECK(plain.loss == formed.loss);
  CHECK(distance(plain.gradient, formed.gradient) < tolerance);
  CHECK(formed.bytes < plain.bytes);
  // The true shares are not equal: the prior alone would be a different cotangent.
  CHECK(distance(plain.gradient, with_expected<T>(rows, 40, prior, {}).gradient) > 0.1);
  CHECK(distance(with_expected<T>(rows, 40, prior, {}).gradient,
                 with_expected<T>(rows, 40, prior, prior, false, group).gradient) < tolerance);
}

// Whole groups make a chunk shorter than its largest size. If the expectation fails, the backward pass recomputes chunk by
// chunk. It must use chunks of the same rows, otherwise it writes beyond its buffers.
TEST_CASE_TEMPLATE("with wrongly expected shares and groups that end chunks early, the gradient is right", T, float, double) {
  for (const int members : {3, 5, 7, 100}) {
    CAPTURE(members);
    const std::size_t rows = 1300;
    std::vector<int> group(rows);
    std::vector<double> prior(rows), cotangent(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      group[r] = static_cast<int>(r) / members;
      prior[r] = static_cast<double>(1 + r % 4) / 8.0;
      cotangent[r] = std::sin(static_cast<double>(r));  // not the losses' shares
    }
    const auto plain = with_expected<T>(rows, 40, cotangent, {}),
               formed = with_expected<T>(rows, 40, cotangent, prior, false, group);
    CHECK(distance(plain.gradient, formed.gradient) < (sizeof(T) == 4 ? 1e-4 : 1e-11));
  }
  std::vector<int> label(260), group(260);
  std::vector<double> prior(260, 0.5);
  for (std::size_t r = 0; r < label.size(); ++r) {
    label[r] = static_cast<int>(r % 3);
    group[r] = static_cast<int>(r) / 5;  // 255 rows, then 5
  }
  expect_gradient(
      [&](auto&, const auto& v) {
        return linear_cross_entropy(v[0], v[1], v[2], std::span<const int>(label), {prior, group}).loss;
      },
      {random_matrix(260, 2, 1), random_matrix(3, 2, 2), random_matrix(1, 3, 3)});
}

TEST_CASE_TEMPLATE("hinted shares are recognised for any peakedness, down to priors below the smallest number", T, float,
                   double) {
  const std::size_t rows = 600;
  std::vector<int> label(rows), group(rows);
  std::vector<double> prior(rows);
  std::vector<T> log_prior(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    label[r] = static_cast<int>(r * 13 % 40);
    group[r] = static_cast<int>(r) / 4;
    log_prior[r] = static_cast<T>(r % 4 == 0 ? 0 : -40.7 * static_cast<double>(1 + r % 13));  // sums to one with the first row
    prior[r] = std::exp(static_cast<double>(log_prior[r]));
  }
  const auto run = [&](ExpectedCotangents expected, std::vector<double>& gradient) {
    Tape<T> tape;
    const auto v = place(tape, {random_matrix(rows, 5, 1, -9, 9), random_matrix(40, 5, 2, -9, 9), random_matrix(1, 40, 3)});
    const auto loss = linear_cross_entropy(v[0], v[1], v[2], std::span<const int>(label), expected).loss;
    const auto joint = subtract(tape.constant({log_prior.data(), rows, 1}), loss);
    tape.backward(sum(segment_logsumexp(joint, std::span<const int>(group), rows / 4)));
    for (auto x : v) {
      const auto g = tape.gradient(x);
      gradient.insert(gradient.end(), g.data, g.data + g.size());
    }
    return tape.missed_hints();
  };
  std::vector<double> plain, formed;
  CHECK(run({}, plain) == 0);
  CHECK(run({prior, group}, formed) == 0);
  CHECK(distance(plain, formed) < (sizeof(T) == 4 ? 1e-2 : 1e-10));
  prior[2] *= 1 + (sizeof(T) == 4 ? 1e-2 : 1e-6);  // a weight that truly differs is detected
  prior[1] = 1;
  std::vector<double> noticed;
  CHECK(run({prior, group}, noticed) == 1);
  CHECK(distance(plain, noticed) < (sizeof(T) == 4 ? 1e-2 : 1e-10));
}

}  // namespace hardgrad::testing::cross_entropy_test
