#include "core/autodiff/binary_cross_entropy.hpp"

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

TEST_CASE("binary_cross_entropy: gradients, for whole registers and the ends of rows") {
  for (std::size_t columns : {1, 3, 16, 37}) {
    const auto l = random_matrix(4, columns, 1, -4, 4);
    expect_gradient(
        [&](auto& tape, const auto& v) { return binary_cross_entropy(v[0], seen(tape, columns), std::span<const int>(index)); },
        {l});
    expect_gradient(  // with a second use of each input: cotangents add
        [&](auto& tape, const auto& v) {
          const auto loss = binary_cross_entropy(v[0], seen(tape, columns), std::span<const int>(index));
          return add(loss, row_sums(square(v[0])));
        },
        {l});
  }
}

TEST_CASE("binary_cross_entropy is log(1 + exp l) - y l, and finite even if exp l is not") {
  Tape<double> tape;
  const auto l = random_matrix(4, 5, 2);
  const auto x = place(tape, {l})[0];
  const auto loss = binary_cross_entropy(x, seen(tape, 5), std::span<const int>(index));
  for (std::size_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < 5; ++c) {
      const double p = 1 / (1 + std::exp(-l.row(r)[c])), y = seen(tape, 5).value()(index[r], c);
      sum -= y * std::log(p) + (1 - y) * std::log(1 - p);
    }
    CHECK(loss.value().data[r] == doctest::Approx(sum).epsilon(1e-13));
  }
  Tape<float> narrow;
  const float odds[] = {500.f, -500.f, 500.f, -500.f}, bits[] = {1, 0, 0, 1};
  const std::vector<int> own{0, 1, 2, 3};
  const auto far = binary_cross_entropy(narrow.constant(MatrixView<const float>{odds, 4, 1}),
                                        narrow.constant(MatrixView<const float>{bits, 4, 1}), std::span<const int>(own));
  const float expected[] = {0, 0, 500, 500};
  for (int r = 0; r < 4; ++r) CHECK(far.value().data[r] == expected[r]);
  CHECK_THROWS_AS(binary_cross_entropy(tape.constant(4, 3), tape.constant(2, 4), std::span<const int>(index)), Bug);
  CHECK_THROWS_AS(binary_cross_entropy(tape.constant(3, 3), tape.constant(2, 3), std::span<const int>(index)), Bug);
}

}  // namespace hardgrad::testing::binary_cross_entropy_test
