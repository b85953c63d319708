#include "core/autodiff/product.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/kernels/small_product.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::product_test {
namespace {

/// The first `cols` columns of a matrix.
Block<const double> columns(const Matrix& x, std::size_t cols) {
  return {MatrixView<const double>{x.data(), x.shape()[0], x.shape()[1]}, cols};
}

void expect_triple_loop(std::size_t m, std::size_t n, std::size_t k) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (double beta : {0.0, 0.5, 1.0}) {
        // Each is a block of a matrix with more columns, or the whole.
        for (std::size_t more : {0, 2}) {
          const std::size_t p = (ta ? m : k) + more, q = (tb ? k : n) + more, s = n + more;
          const auto a = random_matrix(ta ? k : m, p, 1), b = random_matrix(tb ? n : k, q, 2);
          // If the product replaces the output, the old content must not matter.
          Matrix c = full<double>({m, s}, beta == 0 ? std::nan("") : 0.25);
          for (std::size_t i = 0; i < m; ++i) std::fill(&c.flat(i * s + n), &c.flat(i * s) + s, 7.0);
          gemm<double>(columns(a, p - more), ta, columns(b, q - more), tb, {MatrixView<double>{c.data(), m, s}, n}, beta, 2.0);
          for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
              double sum = 0;
              for (std::size_t l = 0; l < k; ++l)
                sum += (ta ? a.flat(l * p + i) : a.flat(i * p + l)) * (tb ? b.flat(j * q + l) : b.flat(l * q + j));
              CHECK(c.flat(i * s + j) == doctest::Approx(2 * sum + beta * 0.25));
            }
            for (std::size_t j = n; j < s; ++j) CHECK(c.flat(i * s + j) == 7);
          }
        }
      }
}

}  // namespace

TEST_CASE("gemm equals the triple loop, for every transposition, stored or added") {
  struct Shape {
    std::size_t m, n, k;
  };
  std::vector<Shape> shapes{{8, 8, 16},  {8, 9, 16},  {1, 1, 1025},
                            {1, 40, 30}, {40, 1, 30}, {17, 7, 11}};  // our loops, and BLAS
  for (std::size_t m : {1, 2, 3, 5})
    for (std::size_t n = 1; n <= 9; ++n)
      for (std::size_t k : {1, 2, 4}) shapes.push_back({m, n, k});
  int small = 0, large = 0;
  for (const auto& [m, n, k] : shapes) {
    ++(m * n * k <= kernels::small_product ? small : large);
    expect_triple_loop(m, n, k);
  }
  CHECK(small == 109);
  CHECK(large == 5);
  double one = 7;
  const auto view = [&](std::size_t rows, std::size_t cols) { return MatrixView<double>{&one, rows, cols}; };
  gemm<double>(view(1, 0), false, view(0, 1), false, view(1, 1));
  CHECK(one == 0);
  CHECK_THROWS_AS(gemm<double>(view(1, 1), false, view(1, 1), false, view(2, 1)), Bug);
}

TEST_CASE("linear, add_linear, matmul") {
  for (std::size_t r : {1, 2, 9}) {
    const auto x = random_matrix(r, 4, 1), w = random_matrix(3, 4, 2), b = random_matrix(1, 3, 3);
    expect_gradient([](auto&, const auto& v) { return linear(v[0], v[1], v[2]); }, {x, w, b});
    expect_gradient([](auto&, const auto& v) { return linear(v[0], v[1]); }, {x, w});
    expect_gradient([](auto&, const auto& v) { return add_linear(v[2], v[0], v[1]); }, {x, w, random_matrix(r, 3, 4)});
    expect_gradient([](auto&, const auto& v) { return matmul(v[0], v[1]); }, {x, random_matrix(4, 5, 5)});
  }
}

TEST_CASE("rows without a cotangent do not enter a product's gradient, even if they are not finite") {
  Tape<double> tape;
  auto rows = random_matrix(5, 4, 1);
  std::fill_n(&rows.flat(4), 4, INFINITY);
  const auto v = place(tape, {rows, random_matrix(70, 4, 2), random_matrix(1, 70, 3)});
  const auto w = place(tape, {random_matrix(5, 4, 1), random_matrix(70, 4, 2), random_matrix(1, 70, 3)});
  auto cotangent = random_matrix(5, 70, 4);
  for (std::size_t row : {1, 3}) std::fill_n(&cotangent.flat(row * 70), 70, 0.0);
  std::fill_n(&cotangent.flat(2 * 70), 69, 0.0);  // the last entry is not 0
  const MatrixView<const double> g{cotangent.data(), 5, 70};
  const auto y = linear(v[0], v[1], v[2]), whole = linear(w[0], w[1], w[2]);
  tape.backward(y, g);
  std::vector<double> of_x(20), of_w(280), of_b(70);
  for (std::size_t r = 0; r < 5; ++r)
    for (std::size_t o = 0; o < 70; ++o) {
      of_b[o] += g(r, o);
      for (std::size_t i = 0; i < 4; ++i) {
        of_x[r * 4 + i] += g(r, o) * w[1].value()(o, i);
        of_w[o * 4 + i] += g(r, o) * w[0].value()(r, i);
      }
    }
  const auto same = [&](Var<double> x, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(tape.gradient(x).data[i] == doctest::Approx(expected[i]));
  };
  same(v[0], of_x), same(v[1], of_w), same(v[2], of_b);
  tape.backward(add(whole, whole), g);  // two cotangents; the second is added
  for (double& x : of_x) x *= 2;
  for (double& x : of_w) x *= 2;
  same(w[0], of_x), same(w[1], of_w);
  const std::vector<double> nothing(350);
  tape.backward(whole, {nothing.data(), 5, 70});
  same(w[0], std::vector<double>(20)), same(w[1], std::vector<double>(280)), same(w[2], std::vector<double>(70));
}

TEST_CASE("add_linear reuses the memory of a computed base, and copies a leaf") {
  const auto x = random_matrix(3, 4, 1), w = random_matrix(2, 4, 2), base = random_matrix(3, 2, 3);
  expect_gradient([](auto&, const auto& v) { return add_linear(add(v[2], v[2]), v[0], v[1]); }, {x, w, base});
  // A chain of them; the base's cotangent is added to another.
  expect_gradient(
      [](auto&, const auto& v) {
        const auto y = square(v[2]);
        return add_linear(add_linear(add(y, v[2]), v[0], v[1]), v[0], v[1]);
      },
      {x, w, base});
  Tape<double> tape;
  const auto v = place(tape, {x, w, base});
  const auto leaf = add_linear(v[2], v[0], v[1]);
  CHECK(v[2].value().data[0] == base.flat(0));
  const auto made = square(v[2]), kept = tape.detach(made);
  CHECK(add_linear(made, v[0], v[1]).value().data != kept.value().data);  // in use elsewhere: not overwritten
  const auto own = square(v[2]);
  const double* memory = own.value().data;
  CHECK(add_linear(own, v[0], v[1]).value().data == memory);
  CHECK_THROWS_AS(own.value(), Bug);
  CHECK_THROWS_AS(square(own), Bug);
  CHECK_THROWS_AS(add_linear(leaf, leaf, v[1]), Bug);
}

TEST_CASE("products of a matrix with itself, and weights used twice") {
  const auto a = random_matrix(3, 3, 1);
  expect_gradient([](auto&, const auto& v) { return matmul(v[0], v[0]); }, {a});
  expect_gradient([](auto&, const auto& v) { return linear(v[0], v[0]); }, {a});
  expect_gradient([](auto&, const auto& v) { return linear(linear(v[0], v[1], v[2]), v[1], v[2]); },
                  {random_matrix(4, 3, 2), a, random_matrix(1, 3, 3)});
}

TEST_CASE("products reject shapes that do not fit") {
  Tape<float> tape;
  auto x = tape.constant(2, 3);
  CHECK_THROWS_AS(linear(x, tape.constant(4, 2)), Bug);
  CHECK_THROWS_AS(linear(x, tape.constant(4, 3), tape.constant(1, 3)), Bug);
  CHECK_THROWS_AS(matmul(x, x), Bug);
}

}  // namespace hardgrad::testing::product_test
