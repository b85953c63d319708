// gather_sum against its definition: values and gradients.
#include <doctest/doctest.h>

#include "core/autodiff/reduce.hpp"

namespace hardgrad::testing::gather_sum_test {

TEST_CASE("gather_sum adds the given rows and scatters the cotangent back") {
  Tape<double> tape;
  const std::vector<double> a{1, 2, 3, 4}, b{10, 20, 30, 40, 50, 60};
  const auto x = tape.input({a.data(), 2, 2}), y = tape.input({b.data(), 3, 2});
  const std::vector<int> i{1, 0, 1}, j{2, -1, 2};
  const auto out = gather_sum<double>(3, {{x, i}, {}, {y, j}, {y}});
  const std::vector<double> expected{3 + 50 + 10, 4 + 60 + 20, 1 + 30, 2 + 40, 3 + 50 + 50, 4 + 60 + 60};
  for (std::size_t n = 0; n < 6; ++n) CHECK(out.value().data[n] == expected[n]);

  const std::vector<double> weight{1, 2, 3, 5, 7, 11};
  tape.backward(weighted_sum(out, std::span<const double>(weight)));
  const std::vector<double> dx{3, 5, 8, 13}, dy{1, 2, 3, 5, 8 + 7, 13 + 11};
  for (std::size_t n = 0; n < 4; ++n) CHECK(tape.gradient(x).data[n] == dx[n]);
  for (std::size_t n = 0; n < 6; ++n) CHECK(tape.gradient(y).data[n] == dy[n]);
}

TEST_CASE("gather_sum: an index of -1 in the first part means a row of zeros, and shapes must agree") {
  Tape<float> tape;
  const auto x = tape.constant(2, 3, 1.0f);
  const std::vector<int> i{-1, 1};
  const auto out = gather_sum<float>(2, {{x, i}});
  CHECK(out.value()(0, 0) == 0.0f);
  CHECK(out.value()(1, 2) == 1.0f);
  CHECK_THROWS_AS(gather_sum<float>(3, {{x}}), Bug);
  CHECK_THROWS_AS(gather_sum<float>(2, {{x}, {tape.constant(2, 2)}}), Bug);
}

}  // namespace hardgrad::testing::gather_sum_test
