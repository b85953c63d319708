// Arrays: new ones, rows, and views of the same memory.
#include <doctest/doctest.h>

#include "core/support/array.hpp"

namespace hardgrad::testing::array_test {
namespace {

TEST_CASE("a matrix view and xtensor's view are the same numbers") {
  std::vector<double> numbers{1, 2, 3, 4, 5, 6};
  const MatrixView<double> matrix{numbers.data(), 2, 3};
  auto array = as_array(matrix);
  REQUIRE(array.dimension() == 2);
  CHECK(array(1, 0) == 4);
  array += 10;
  CHECK(numbers == std::vector<double>{11, 12, 13, 14, 15, 16});
  CHECK(array.data() == numbers.data());

  Array<double> own = as_array(matrix);
  const auto back = as_matrix(own);
  REQUIRE(back.rows == 2);
  REQUIRE(back.cols == 3);
  back(1, 2) = -1;
  CHECK(own(1, 2) == -1);
  CHECK(numbers[5] == 16);  // its own numbers
  Array<double> vector = shaped<double>({3}, {7, 8, 9});
  CHECK(as_matrix(vector).rows == 3);
  CHECK(as_matrix(vector).cols == 1);
}

TEST_CASE("new arrays are 0, rows are spans, and axes beyond the rank have length 1") {
  auto x = zeros<int>({2, 3});
  CHECK(x.storage() == std::vector<int>(6));
  row_of(x, 1)[2] = 5;
  CHECK(x(1, 2) == 5);
  CHECK(extent(x, 1) == 3);
  CHECK(extent(x, 2) == 1);
  CHECK(row_size(zeros<int>({0})) == 0);
  CHECK(full<int>({2}, 4).storage() == std::vector<int>{4, 4});
}

}  // namespace
}  // namespace hardgrad::testing::array_test
