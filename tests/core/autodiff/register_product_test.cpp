// Products in registers, against sums in double: odd sizes, both orders, any alignment.
#include "core/kernels/register_product.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/autodiff/product.hpp"

namespace hardgrad::testing::register_product_test {
namespace {

template <class T>
std::vector<T> numbers(std::size_t n, double phase) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>(std::sin(phase + 0.7 * static_cast<double>(i * i % 9973)));
  return x;
}

/// A matrix with two more numbers in every line, beginning `offset` numbers after the start of its memory.
template <class T>
kernels::Strided<T> strided(const std::vector<T>& memory, std::size_t rows, std::size_t cols, bool transposed,
                            std::size_t offset) {
  return {memory.data() + offset, transposed ? 1 : cols + 2, transposed ? rows + 2 : 1};
}

/// Largest error of c = beta c + 2 a b in units of the sum of the absolute products; 1 if a number beside c changed.
template <class T>
double error(std::size_t rows, std::size_t inner, std::size_t cols, int kind) {
  const bool a_turned = kind & 1, b_turned = kind & 2, c_turned = kind & 4;
  const T beta = static_cast<T>(kind / 8 * 0.5);  // 0, 0.5, 1
  const auto offset = static_cast<std::size_t>(kind % 5);
  const auto in_a = numbers<T>((rows + 2) * (inner + 2) + offset, 0.3),
             in_b = numbers<T>((inner + 2) * (cols + 2) + offset, 1.1);
  const auto a = strided(in_a, rows, inner, a_turned, offset), b = strided(in_b, inner, cols, b_turned, offset);
  const std::size_t down = c_turned ? 1 : cols + 2, right = c_turned ? rows + 2 : 1;
  std::vector<T> c((rows + 2) * (cols + 2) + offset, T{7});
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) c[offset + i * down + j * right] = beta == 0 ? static_cast<T>(NAN) : T{0.25};
  kernels::multiply_registers<T>(a, b, {c.data() + offset, down, right, beta, T{2}}, rows, inner, cols);
  double worst = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) {
      double sum = 0.25 * static_cast<double>(beta), size = 1e-30 + sum;
      for (std::size_t l = 0; l < inner; ++l) {
        const double product = 2.0 * static_cast<double>(a(i, l)) * static_cast<double>(b(l, j));
        sum += product, size += std::abs(product);
      }
      T& entry = c[offset + i * down + j * right];
      const double off = std::abs(static_cast<double>(entry) - sum) / size;
      worst = off <= worst ? worst : off;  // keeps NaN
      entry = 7;
    }
  for (T beside : c)
    if (beside != 7) worst = 1;
  return worst;
}

}  // namespace

TEST_CASE_TEMPLATE("a product in registers equals the sums in double", T, float, double) {
  const double most = sizeof(T) == 4 ? 2e-6 : 4e-15;
  int kind = 0;
  for (std::size_t few = 1; few <= 70; ++few)
    for (std::size_t inner : {1, 37}) {  // every kind comes up with every tail of rows and of columns
      if (few >= kernels::width<T>) CHECK(error<T>(29, inner, few, kind++ % 24) < most);
      CHECK(error<T>(few, inner, 41, kind++ % 24) < most);
    }
  for (int every = 0; every < 24; ++every) {
    CHECK(error<T>(13, 8211, 19, every) < most);                      // several blocks of the inner index
    CHECK(error<T>(5, 700, 1200, every) < most);                      // and of the columns
    CHECK(error<T>(530, 40, 35, every) < most);                       // many rows: the right factor is copied
    CHECK(error<T>(17, 33, 2048 / sizeof(T) * 2 - 2, every) < most);  // its lines are 4096 bytes apart: copied, too
  }
}

TEST_CASE("gemm multiplies in registers where that is faster, for every transposition") {
  struct Shape {
    std::size_t rows, inner, cols;
  };
  const auto path = [](const Shape& shape, bool turned) {
    const float* none = nullptr;
    return kernels::fastest<float>({none, turned ? 1 : shape.cols, turned ? shape.inner : 1}, shape.rows, shape.inner,
                                   shape.cols);
  };
  using kernels::GemmPath;
  int in_registers = 0;
  for (const auto& shape : {Shape{30, 1030, 1025},
                            {1025, 1030, 29},
                            {2900, 1, 2897},
                            {32, 784, 200},
                            {64, 200, 784},
                            {100, 320, 128},
                            {128, 128, 64}}) {
    const auto& [m, k, n] = shape;
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        in_registers += path(shape, tb) != GemmPath::blas;
        const auto a = numbers<float>(m * k, 0.3), b = numbers<float>(k * n, 1.1);
        std::vector<float> c(m * n, NAN);
        const auto view = [](auto& x, std::size_t rows, std::size_t cols) {
          return MatrixView<std::remove_reference_t<decltype(x[0])>>{x.data(), rows, cols};
        };
        gemm<float>(ta ? view(a, k, m) : view(a, m, k), ta, tb ? view(b, n, k) : view(b, k, n), tb, view(c, m, n));
        double worst = 0;
        for (std::size_t i = 0; i < m * n; i += 101) {
          double sum = 0;
          for (std::size_t l = 0; l < k; ++l)
            sum += static_cast<double>(ta ? a[l * m + i / n] : a[i / n * k + l]) * (tb ? b[i % n * k + l] : b[l * n + i % n]);
          const double off = std::abs(c[i] - sum);
          worst = off <= worst ? worst : off;
        }
        CHECK(worst < 5e-7 * static_cast<double>(k));
      }
  }
  CHECK(in_registers == (kernels::width<float> == 16 ? 28 : 12));
  // few rows that leave registers empty, many rows, or small matrices: BLAS
  for (const auto& shape : {Shape{1, 4000, 4000}, {65, 4000, 4000}, {50, 784, 200}, {2000, 32, 2000}, {32, 32, 128}})
    for (bool turned : {false, true}) CHECK(path(shape, turned) == GemmPath::blas);
}

}  // namespace hardgrad::testing::register_product_test
