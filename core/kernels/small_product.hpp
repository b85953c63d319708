// Products of small matrices, for which the BLAS call takes longer than the multiplications. OpenBLAS takes a lock at every
// call: 80 ns with one thread, 450 ns with two at once, and more with many. Exact moments of small networks need millions of
// such products.
#pragma once

#include <cstddef>

namespace hardgrad::kernels {

/// The largest number of multiplications for which these loops are used (experiments/benchmarks/parts_bench.cpp: gemm).
constexpr std::size_t small_product = 1024;

/// A matrix whose entry (i, j) is data[i * down + j * right]. Exchanging `down` and `right` transposes it.
template <class T>
struct Strided {
  const T* data;
  std::size_t down, right;
  const T& operator()(std::size_t i, std::size_t j) const { return data[i * down + j * right]; }
};
template <class T>
Strided<T> turned(Strided<T> x) {
  return {x.data, x.right, x.down};
}

/// The R x C entries from (i, j) on of c = beta c + alpha a b. Each sum runs in the order of the inner index, and the sums are
/// independent chains in registers. c has rows of length `stride`; it is not read if beta is 0.
template <std::size_t R, std::size_t C, class T>
inline void multiply_block(Strided<T> a, Strided<T> b, std::size_t inner, T* c, std::size_t stride, std::size_t i,
                           std::size_t j, T beta, T alpha) {
  T sums[R][C] = {};
  for (std::size_t l = 0; l < inner; ++l)
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t s = 0; s < C; ++s) sums[r][s] += a(i + r, l) * b(l, j + s);
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t s = 0; s < C; ++s) {
      T& to = c[(i + r) * stride + j + s];
      to = beta == 0 ? alpha * sums[r][s] : beta * to + alpha * sums[r][s];
    }
}

/// c [rows, cols] = beta c + alpha a b; a [rows, inner], b [inner, cols].
template <class T>
[[gnu::always_inline]] inline void multiply_small(Strided<T> a, Strided<T> b, T* c, std::size_t stride, std::size_t rows,
                                                  std::size_t inner, std::size_t cols, T beta, T alpha) {
  const auto columns = [&]<std::size_t C>(std::size_t j) {
    std::size_t i = 0;
    for (; i + 2 <= rows; i += 2) multiply_block<2, C>(a, b, inner, c, stride, i, j, beta, alpha);
    if (i < rows) multiply_block<1, C>(a, b, inner, c, stride, i, j, beta, alpha);
  };
  std::size_t j = 0;
  for (; j + 4 <= cols; j += 4) columns.template operator()<4>(j);
  if (cols - j == 3) columns.template operator()<3>(j);
  if (cols - j == 2) columns.template operator()<2>(j);
  if (cols - j == 1) columns.template operator()<1>(j);
}

}  // namespace hardgrad::kernels
