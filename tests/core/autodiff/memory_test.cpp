#include "core/autodiff/attention.hpp"

#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::memory_test {

// Each of R rows has its own memory.
std::vector<int> own(std::size_t rows) {
  std::vector<int> of(rows);
  std::iota(of.begin(), of.end(), 0);
  return of;
}

template <class T>
Var<T> write_own(const std::vector<Var<T>>& x, Var<T> w, Var<T> erase, Var<T> add) {
  return write_cells(x[0], own(x[0].rows() / w.cols()), w, erase, add);
}

TEST_CASE("cosines of heads and the cells of their row") {
  for (auto [rows, heads, cells, width] : {std::array{1, 1, 1, 1}, {2, 3, 5, 7}, {2, 2, 37, 20}})
    expect_gradient(
        [rows = rows, cells = cells](auto&, const auto& x) { return cosines(x[0], x[1], own(rows), cells, {1e-3f}); },
        {random_matrix(rows * heads, width, 1), random_matrix(rows * cells, width, 2)});
  expect_gradient([](auto&, const auto& x) { return cosines(x[0], x[0], own(3), 1, {1e-3f}); }, {random_matrix(3, 4, 3)});
  Tape<double> tape;  // two rows, each of one head and two cells
  const auto x = place(tape, {shaped<double>({2, 2}, {3, 4, 1, 0}), shaped<double>({4, 2}, {6, 8, -4, 3, 0, 0, -1, 1})});
  const auto y = cosines(x[0], x[1], own(2), 2, 1e-30);
  const std::vector<double> expected{1, 0, 0, -std::sqrt(0.5)};
  for (int i = 0; i < 4; ++i) CHECK(y.value().data[i] == doctest::Approx(expected[i]));
}

TEST_CASE("a shift is a circular convolution") {
  for (auto [rows, cells, shifts] : {std::array{1, 1, 3}, {3, 2, 3}, {2, 7, 3}, {2, 5, 5}, {2, 3, 1}})
    expect_gradient([](auto&, const auto& x) { return circular_shift(x[0], x[1]); },
                    {random_matrix(rows, cells, 2), random_matrix(rows, shifts, 3)});
  Tape<double> tape;
  const auto x = place(tape, {shaped<double>({3, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3}),
                              shaped<double>({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1})});  // one back, stay, one on
  const auto y = circular_shift(x[0], x[1]);
  const std::vector<double> expected{2, 3, 1, 1, 2, 3, 3, 1, 2};
  CHECK(std::equal(expected.begin(), expected.end(), y.value().data));
}

TEST_CASE("heads erase and add") {
  for (int heads : {1, 2, 3})
    for (int cells : {1, 4}) {
      const int rows = 2, width = 3;
      expect_gradient([](auto&, const auto& x) { return write_own(x, x[1], x[2], x[3]); },
                      {random_matrix(rows * cells, width, 1), random_matrix(rows * heads, cells, 2, 0.1, 0.9),
                       random_matrix(rows * heads, width, 3, 0.1, 0.9), random_matrix(rows * heads, width, 4)});
    }
}

TEST_CASE("a memory that is read after it was written gets both gradients") {
  for (int heads : {1, 2})
    expect_gradient([](auto&, const auto& x) { return add(write_own(x, x[1], x[2], x[3]), x[0]); },
                    {random_matrix(8, 3, 1), random_matrix(2 * heads, 4, 2, 0.1, 0.9), random_matrix(2 * heads, 3, 3, 0.1, 0.9),
                     random_matrix(2 * heads, 3, 4)});
}

TEST_CASE("rows share memories, skip some, or take them out of order") {
  for (const auto& of : {std::vector{0, 2}, {1, 2, 3}, {0, 1, 2}, {0, 0, 2}, {2, 0}})
    for (int heads : {1, 2})
      for (bool read_again : {false, true}) {
        const int rows = static_cast<int>(of.size()) * heads, cells = 3, width = 2;
        const std::vector<Matrix> inputs{random_matrix(4 * cells, width, 1), random_matrix(rows, cells, 2, 0.1, 0.9),
                                         random_matrix(rows, width, 3, 0.1, 0.9), random_matrix(rows, width, 4)};
        expect_gradient(
            [&](auto&, const auto& x) {
              const auto written = reshape(write_cells(x[0], of, x[1], x[2], x[3]), cells * width);
              if (!read_again) return written;
              return concat_columns({written, reshape(cosines(x[2], x[0], of, cells, {1e-3f}), heads * cells)});
            },
            inputs);
        for (int i = 0; i < 4; ++i) {  // cotangents may be changed in place if they are not kept
          Tape<double> kept, released;
          const auto gradient = [&](auto& tape, auto backward) {
            const auto x = place(tape, inputs);
            backward(tape, sum(square(write_cells(x[0], of, x[1], x[2], x[3]))));
            return tape.gradient(x[i]);
          };
          const auto one = gradient(kept, [](auto& tape, auto y) { tape.backward(y); });
          const auto other = gradient(released, [](auto& tape, auto y) { tape.backward_to_leaves(y); });
          CHECK(std::equal(one.data, one.data + one.size(), other.data));
        }
        Tape<double> tape;  // the same as with copies of the memories
        const auto x = place(tape, inputs);
        const auto copies = gather_rows(reshape(x[0], cells * width), std::span<const int>(of));
        const auto copied = write_cells(reshape(copies, width), own(of.size()), x[1], x[2], x[3]).value();
        const auto shared = write_cells(x[0], of, x[1], x[2], x[3]).value();
        CHECK(std::equal(copied.data, copied.data + copied.size(), shared.data));
      }
}

TEST_CASE("a hard head changes only its cell, and gradients reflect that") {
  const Matrix one_hot = shaped<double>({2, 3}, {0, 1, 0, 0, 0, 1});
  const std::vector<Matrix> inputs{random_matrix(3, 2, 5), random_matrix(2, 2, 6, 0.1, 0.9), random_matrix(2, 2, 7)};
  const auto write = [&](auto& tape, const auto& x) {
    auto w = tape.constant(2, 3);
    for (std::size_t i = 0; i < 6; ++i) tape.mutable_value(w).data[i] = one_hot.flat(i);
    return write_own(x, w, x[1], x[2]);
  };
  expect_gradient(write, inputs);
  Tape<double> tape;
  const auto x = place(tape, inputs);
  const auto y = write(tape, x).value();
  for (int j = 0; j < 2; ++j) {
    CHECK(y(0, j) == inputs[0](0, j));
    CHECK(y(1, j) == doctest::Approx(inputs[0](1, j) * (1 - inputs[1](0, j)) + inputs[2](0, j)));
    CHECK(y(2, j) == doctest::Approx(inputs[0](2, j) * (1 - inputs[1](1, j)) + inputs[2](1, j)));
  }
}

TEST_CASE("shapes that do not fit are rejected") {
  Tape<double> tape;
  const auto x = [&](std::size_t r, std::size_t c) { return tape.constant(r, c); };
  CHECK_THROWS_AS(cosines(x(2, 3), x(4, 2), own(2), 2, 1.0), Bug);
  CHECK_THROWS_AS(cosines(x(3, 2), x(4, 2), own(2), 2, 1.0), Bug);
  CHECK_THROWS_AS(circular_shift(x(2, 3), x(2, 2)), Bug);
  CHECK_THROWS_AS(write_cells(x(6, 2), own(2), x(3, 3), x(3, 2), x(3, 2)), Bug);
  CHECK_THROWS_AS(write_cells(x(6, 2), own(2), x(2, 3), x(2, 1), x(2, 1)), Bug);
  CHECK_THROWS_AS(write_cells(x(6, 2), own(3), x(3, 3), x(3, 2), x(3, 2)), Bug);
}

}  // namespace hardgrad::testing::memory_test
