// Convolutions: against the definition; their gradient in picture, weight and bias.
#include "core/autodiff/images.hpp"

#include <doctest/doctest.h>

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::convolution_test {
namespace {

constexpr std::size_t B = 2, C = 3;
const std::vector<Windows> every_kind = {{.height = 4, .width = 4, .kernel = 2, .stride = 2},
                                         {.height = 3, .width = 5, .kernel = 3, .stride = 1, .padding = 1},
                                         {.height = 5, .width = 4, .kernel = 3, .stride = 2, .padding = 2},
                                         {.height = 4, .width = 3, .kernel = 1},
                                         {.height = 2, .width = 3, .kernel = 3, .stride = 3, .padding = 1},
                                         {.height = 3, .width = 2, .kernel = 1, .padding = 2},
                                         {.height = 12, .width = 9, .kernel = 3, .padding = 1},
                                         {.height = 13, .width = 11, .kernel = 3, .stride = 2, .padding = 1}};
const Windows large = {.height = 90, .width = 70, .kernel = 3, .padding = 1};

/// C channels to O: few, and more than are summed at once.
std::vector<Matrix> inputs(const Windows& w, std::size_t O) {
  return {random_matrix(B * w.height * w.width, C, 1), random_matrix(O, w.kernel * w.kernel * C, 2), random_matrix(1, O, 3)};
}

TEST_CASE("a convolution equals its definition") {
  auto kinds = every_kind;
  kinds.push_back(large);
  for (const std::size_t O : {2, 19})
    for (const auto& w : kinds) {
      CAPTURE(w.height);
      const auto given = inputs(w, O);
      const auto &x = given[0], &weight = given[1], &bias = given[2];
      Tape<double> tape;
      const auto placed = place(tape, given);
      const auto y = convolution(placed[0], w, placed[1], placed[2]).value();
      REQUIRE(y.rows == B * w.rows() * w.cols());
      REQUIRE(y.cols == O);
      const int K = static_cast<int>(w.kernel), P = static_cast<int>(w.padding), H = static_cast<int>(w.height),
                W = static_cast<int>(w.width);
      for (std::size_t b = 0, row = 0; b < B; ++b)
        for (int top = -P; top + K <= H + P; top += static_cast<int>(w.stride))
          for (int left = -P; left + K <= W + P; left += static_cast<int>(w.stride), ++row)
            for (std::size_t o = 0; o < O; ++o) {
              double expected = bias.flat(o);
              for (int i = std::max(top, 0); i < std::min(top + K, H); ++i)
                for (int j = std::max(left, 0); j < std::min(left + K, W); ++j)
                  for (std::size_t c = 0; c < C; ++c)
                    expected += weight(o, ((i - top) * K + j - left) * C + c) * x((b * H + i) * W + j, c);
              CHECK(y(row, o) == doctest::Approx(expected).epsilon(1e-12));
            }
    }
}

TEST_CASE("a convolution's gradient agrees with finite differences") {
  for (const auto& w : every_kind) {
    const auto with_bias = [&](Tape<double>&, const std::vector<Var<double>>& x) { return convolution(x[0], w, x[1], x[2]); };
    for (const std::size_t O : {2, 11}) CHECK(gradient_error(with_bias, inputs(w, O)) == "");
    const auto without = [&](Tape<double>&, const std::vector<Var<double>>& x) { return convolution(x[0], w, x[1]); };
    auto two = inputs(w, 2);
    two.pop_back();
    CHECK(gradient_error(without, two) == "");
  }
}

TEST_CASE("windows that do not fit are rejected") {
  Tape<double> tape;
  const auto x = tape.constant(12, C), weight = tape.constant(2, 9 * C);
  CHECK_THROWS_AS(convolution(x, {.height = 2, .width = 6, .kernel = 3}, weight), Bug);
  CHECK_THROWS_AS(convolution(x, {.height = 5, .width = 5, .kernel = 3}, weight), Bug);
  CHECK_THROWS_AS(convolution(x, {.height = 3, .width = 4, .kernel = 2}, weight), Bug);
  CHECK_THROWS_AS(convolution(x, {.height = 3, .width = 4, .kernel = 3, .stride = 0}, weight), Bug);
  CHECK(convolution(x, {.height = 3, .width = 4, .kernel = 3}, weight).rows() == 2);
}

}  // namespace
}  // namespace hardgrad::testing::convolution_test
