#include "core/autodiff/reduce.hpp"

#include <limits>

#include "core/autodiff/elementwise.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::reduce_test {

TEST_CASE("sums") {
  for (auto [r, c] : {std::pair<std::size_t, std::size_t>{1, 1}, {1, 40}, {6, 3}}) {
    const std::vector<Matrix> x{random_matrix(r, c, 1)};
    const auto weight = random_matrix(r, c, 2).storage();
    expect_gradient([&](auto&, const auto& v) { return weighted_sum(v[0], std::span<const double>(weight)); }, x);
    expect_gradient([](auto&, const auto& v) { return sum(v[0]); }, x);
    expect_gradient([](auto&, const auto& v) { return sum(v[0], -0.3); }, x);
    expect_gradient([](auto&, const auto& v) { return row_sums(v[0]); }, x);
    expect_gradient([](auto&, const auto& v) { return add(sum(v[0]), sum(square(v[0]))); }, x);
  }
}

TEST_CASE("sums of consecutive rows") {
  for (std::size_t count : {1, 2, 3, 6})
    expect_gradient([&](auto&, const auto& v) { return group_sums(v[0], count); }, {random_matrix(6, 1, 1)});
  Tape<double> tape;
  const std::vector<double> x{1, 20, 300, 4000};
  const auto y = group_sums(tape.constant({x.data(), 4, 1}), 2).value();
  CHECK(y.rows == 2);
  CHECK(y.data[0] == 21);
  CHECK(y.data[1] == 4300);
  CHECK_THROWS_AS(group_sums(tape.constant({x.data(), 4, 1}), 3), Bug);
  CHECK_THROWS_AS(group_sums(tape.constant({x.data(), 2, 2}), 2), Bug);
}

TEST_CASE("sums are accumulated in double") {
  Tape<float> tape;
  const std::size_t n = 1 << 20;
  std::vector<float> x(n, 0.1f);
  x[0] = 1e7f;
  auto v = tape.constant({x.data(), 1, n});
  const double exact = 1e7 + (n - 1) * static_cast<double>(0.1f);
  CHECK(std::abs(sum(v).item() - exact) < 1);
  CHECK(std::abs(row_sums(v).item() - exact) < 1);
  CHECK(std::abs(weighted_sum(v, std::span<const double>(std::vector<double>(n, 1))).item() - exact) < 1);
}

TEST_CASE("inner_product: as weighted_sum, with weights on the tape") {
  const auto f = [](auto& tape, const auto& v) {
    using T = Number<decltype(tape)>;
    const auto weight = tape.template scratch<T>(v[0].value().size());
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<T>(i % 3) - T(0.5);
    return inner_product(v[0], std::span<const T>(weight));
  };
  for (std::size_t n : {1, 7, 130}) expect_gradient(f, {random_matrix(n, 2, 1)});
  Tape<double> tape;
  const auto x = place(tape, {shaped<double>({2, 1}, {-INFINITY, 2})})[0];
  const double weight[] = {0, 3, 1};
  CHECK(inner_product(x, std::span<const double>(weight, 2)).item() == 6);
  CHECK_THROWS_AS(inner_product(x, std::span<const double>(weight)), Bug);
}

TEST_CASE("a weight of 0 removes an infinite entry") {
  Tape<double> tape;
  auto x = place(tape, {shaped<double>({2, 1}, {-INFINITY, 2})})[0];
  const std::vector<double> weight{0, 3};
  auto y = weighted_sum(x, std::span<const double>(weight));
  CHECK(y.item() == 6);
  tape.backward(y);
  CHECK(tape.gradient(x).data[0] == 0);
}

TEST_CASE("segment_logsumexp") {
  for (const std::vector<int>& group : {std::vector<int>{0}, {0, 0, 0, 0, 0}, {0, 1, 1, 1, 2}, {0, 1, 2}}) {
    const auto groups = static_cast<std::size_t>(group.back() + 1);
    auto x = random_matrix(group.size(), 1, 3, -4, 4);
    const auto f = [&](auto&, const auto& v) { return segment_logsumexp(v[0], std::span<const int>(group), groups); };
    expect_gradient(f, {x});
    if (group.size() < 5) continue;
    x.flat(1) = -INFINITY;
    expect_gradient(f, {x});
    x.flat(2) = x.flat(3) = -INFINITY;  // a whole group of the third case
    expect_gradient(f, {x});
  }
}

TEST_CASE("sums_of_others: of one entry 0, and small ones beside a large one are kept") {
  expect_gradient([](auto&, const auto& v) { return sums_of_others(v[0]); }, {random_matrix(3, 4, 5)});
  Tape<double> tape;
  const auto y = sums_of_others(place(tape, {shaped<double>({2, 3}, {1e-20, 1, 1e-21, 1, 2, 4})})[0]).value();
  const double expected[] = {1 + 1e-21, 1e-20 + 1e-21, 1 + 1e-20, 6, 5, 3};
  for (std::size_t i = 0; i < 6; ++i) CHECK(y.data[i] == doctest::Approx(expected[i]).epsilon(1e-15));
  CHECK(*sums_of_others(place(tape, {shaped<double>({1, 1}, {3})})[0]).value().data == 0);
}

TEST_CASE("segment_sums: sums of rows by group, in any order, also of none") {
  const std::vector<int> group = {2, 0, 2, 3, 2};
  const auto x = random_matrix(5, 3, 4);
  const auto f = [&](auto&, const auto& v) { return segment_sums(v[0], std::span<const int>(group), 5); };
  expect_gradient(f, {x});
  Tape<double> tape;
  const auto y = f(tape, place(tape, {x})).value();
  REQUIRE(y.rows == 5);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(y(0, i) == x(1, i));
    CHECK(y(1, i) == 0);
    CHECK(y(2, i) == doctest::Approx(x(0, i) + x(2, i) + x(4, i)).epsilon(1e-15));
    CHECK(y(4, i) == 0);
  }
}

TEST_CASE("segment_logsumexp: large values, empty input, bad groups") {
  Tape<double> tape;
  auto x = place(tape, {shaped<double>({3, 1}, {1000, 1000, -INFINITY})})[0];
  const std::vector<int> group{0, 0, 1}, unordered{0, 1, 0}, gap{0, 0, 2};
  auto y = segment_logsumexp(x, std::span<const int>(group), 2);
  CHECK(y.value().data[0] == doctest::Approx(1000 + std::log(2.0)));
  CHECK(y.value().data[1] == -INFINITY);
  CHECK_THROWS_AS(segment_logsumexp(x, std::span<const int>(unordered), 2), Bug);
  CHECK_THROWS_AS(segment_logsumexp(x, std::span<const int>(gap), 3), Bug);
  tape.clear();
  x = place(tape, {shaped<double>({2, 1}, {NAN, -INFINITY})})[0];
  CHECK(std::isnan(segment_logsumexp(x, std::span<const int>(std::vector<int>{0, 0}), 1).item()));
}

}  // namespace hardgrad::testing::reduce_test
