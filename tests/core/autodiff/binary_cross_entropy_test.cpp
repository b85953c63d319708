#include "core/autodiff/cross_entropy.hpp"

#include <array>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::binary_cross_entropy_test {
namespace {

const std::vector<int> index{1, 0, 1, 1};  // row of y for each row of l

/// y [2, C] of zeros, ones and one fraction.
template <class T>
Var<T> seen(Tape<T>& tape, std::size_t columns) {
  auto y = tape.constant(2, columns);
  for (std::size_t i = 0; i < 2 * columns; ++i) tape.mutable_value(y).data[i] = static_cast<T>(i % 5 == 4 ? 0.25 : i % 3 == 0);
  return y;
}

}  // namespace

TEST_CASE("linear_binary_cross_entropy: gradients, for whole registers and the ends of rows") {
  for (std::size_t columns : {1, 3, 16, 37}) {
    const std::vector<Array<double>> inputs = {random_matrix(4, 3, 1), random_matrix(columns, 3, 2),
                                               random_matrix(1, columns, 3)};
    const auto loss = [&](auto& tape, const auto& v) {
      return linear_binary_cross_entropy(v[0], v[1], v[2], seen(tape, columns), std::span<const int>(index));
    };
    expect_gradient(loss, inputs);
    expect_gradient(  // with a second use of each input: cotangents add
        [&](auto& tape, const auto& v) {
          auto total = add(loss(tape, v), row_sums(square(v[0])));
          return add(sum(total), add(sum(square(v[1])), sum(square(v[2]))));
        },
        inputs);
    expect_gradient(  // without a bias, some losses unused
        [&](auto& tape, const auto& v) {
          const auto some = linear_binary_cross_entropy(v[0], v[1], {}, seen(tape, columns), std::span<const int>(index));
          return weighted_sum(some, std::span<const double>(std::array{0.0, 2.0, 0.0, -1.0}));
        },
        {inputs[0], inputs[1]});
  }
}

TEST_CASE("binary_cross_entropy: gradients") {
  for (std::size_t columns : {1, 16, 37})
    expect_gradient(
        [&](auto& tape, const auto& v) {
          const auto loss = binary_cross_entropy(v[0], seen(tape, columns), std::span<const int>(index));
          return add(loss, row_sums(square(v[0])));
        },
        {random_matrix(4, columns, 1)});
  Tape<double> tape;
  const std::vector<int> beyond{0, 2};
  CHECK_THROWS_AS(binary_cross_entropy(tape.constant(2, 3), seen(tape, 3), std::span<const int>(beyond)), Bug);
  CHECK_THROWS_AS(binary_cross_entropy(tape.constant(4, 2), seen(tape, 3), std::span<const int>(index)), Bug);
}

TEST_CASE("linear_binary_cross_entropy: rows of every third member are read in place") {
  constexpr std::size_t rows = 60, columns = 5;
  std::vector<int> whose(rows);
  for (std::size_t r = 0; r < rows; ++r) whose[r] = static_cast<int>(r % 2);
  for (const auto& members : {std::vector<int>{0}, {1, 2}, {0, 1, 2}}) {  // of three
    std::vector<double> weight(rows);
    for (std::size_t r = 0; r < rows; ++r)
      for (int member : members)
        if (r % 3 == static_cast<std::size_t>(member)) weight[r] = 0.5 + 0.1 * static_cast<double>(r % 7);
    expect_gradient(
        [&](auto& tape, const auto& v) {
          const auto loss = linear_binary_cross_entropy(v[0], v[1], v[2], seen(tape, columns), std::span<const int>(whose));
          return weighted_sum(loss, std::span<const double>(weight));
        },
        {random_matrix(rows, 2, 4), random_matrix(columns, 2, 5), random_matrix(1, columns, 6)});
  }
}

TEST_CASE("linear_binary_cross_entropy is log(1 + exp l) - y l, and finite even if exp l is not") {
  Tape<double> tape;
  const auto l = random_matrix(4, 5, 2);
  auto identity = tape.constant(5, 5);
  for (std::size_t i = 0; i < 5; ++i) tape.mutable_value(identity)(i, i) = 1;
  const auto x = place(tape, {l})[0];
  const auto loss = linear_binary_cross_entropy(x, identity, {}, seen(tape, 5), std::span<const int>(index));
  for (std::size_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < 5; ++c) {
      const double p = 1 / (1 + std::exp(-l(r, c))), y = seen(tape, 5).value()(index[r], c);
      sum -= y * std::log(p) + (1 - y) * std::log(1 - p);
    }
    CHECK(loss.value().data[r] == doctest::Approx(sum).epsilon(1e-13));
  }
  const auto of_odds = binary_cross_entropy(x, seen(tape, 5), std::span<const int>(index));
  for (std::size_t r = 0; r < 4; ++r) CHECK(of_odds.value().data[r] == loss.value().data[r]);
  Tape<float> narrow;
  const float odds[] = {500.f, -500.f, 500.f, -500.f}, bits[] = {1, 0, 0, 1};
  const std::vector<int> own{0, 1, 2, 3};
  const auto far =
      linear_binary_cross_entropy(narrow.constant(MatrixView<const float>{odds, 4, 1}), narrow.constant(1, 1, 1.f), {},
                                  narrow.constant(MatrixView<const float>{bits, 4, 1}), std::span<const int>(own));
  const float expected[] = {0, 0, 500, 500};
  for (int r = 0; r < 4; ++r) CHECK(far.value().data[r] == expected[r]);
  const auto wrong = [&](std::size_t rows, std::size_t seen) {
    return linear_binary_cross_entropy(tape.constant(rows, 2), tape.constant(3, 2), {}, tape.constant(2, seen),
                                       std::span<const int>(index));
  };
  CHECK_THROWS_AS(wrong(4, 4), Bug);
  CHECK_THROWS_AS(wrong(3, 3), Bug);
}

}  // namespace hardgrad::testing::binary_cross_entropy_test
