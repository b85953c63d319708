// Products through xtensor-blas's cxxblas, which calls OpenBLAS; the smallest products use loops of this project.
#include "core/autodiff/product.hpp"

#include <algorithm>
#include <numeric>
#include <xtensor-blas/xblas_config.hpp>
// After HAVE_CBLAS is defined, which xblas.hpp of 0.21 does too late.
#include <xtensor-blas/xblas.hpp>

#include "core/autodiff/require.hpp"
#include "core/autodiff/tape.hpp"
#include "core/kernels/register_product.hpp"
#include "core/kernels/rows.hpp"
#include "core/kernels/small_product.hpp"
#include "core/support/arena.hpp"

#ifndef CXXBLAS_DRIVERS_CBLAS_H
#error "xtensor-blas would use its own slow products: HAVE_CBLAS must be defined before its headers"
#endif
extern "C" void openblas_set_num_threads(int);

namespace hardgrad {
namespace {

// Tasks already run in parallel: BLAS threads would compete with them.
[[maybe_unused]] const bool one_blas_thread = (openblas_set_num_threads(1), true);

template <class T>
bool all_zero(const T* x, std::size_t n) {
  if (n > 0 && x[0] != 0) return false;
  constexpr std::size_t block = 64;  // checked as a whole: a loop with an early exit is not vectorised
  std::size_t i = 0;
  for (; i + block <= n; i += block) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < block; ++j) bits |= x[i + j] != 0;
    if (bits) return false;
  }
  return std::all_of(x + i, x + n, [](T v) { return v == 0; });
}

/// The rows of a cotangent that are not all zero. Rows are zero if the current pass does not need their loss. If few are zero, all
/// rows: to leave these out would take longer.
template <class T>
std::span<const int> live_rows(Tape<T>& tape, MatrixView<const T> g, std::span<const T> factor) {
  const auto live = tape.template scratch<int>(g.rows);
  std::size_t n = 0;
  for (std::size_t r = 0; r < g.rows; ++r)
    if (factor.empty() ? !all_zero(g.row(r), g.cols) : factor[r] != 0) live[n++] = static_cast<int>(r);
  if (n < g.rows - g.rows / 8) return live.first(n);
  std::iota(live.begin(), live.end(), 0);
  return live;
}

/// The distance between rows that are evenly spaced, as those of every third member: BLAS reads them in place. Else 0.
std::size_t spacing(std::span<const int> rows) {
  const int step = rows.size() > 1 ? rows[1] - rows[0] : 1;
  bool even = true;
  for (std::size_t i = 1; i < rows.size(); ++i) even &= rows[i] - rows[i - 1] == step;
  return even ? static_cast<std::size_t>(step) : 0;
}

/// Copies these rows of x into one block, row i times factor[i] if there are factors.
template <class T>
Block<const T> taken(Tape<T>& tape, MatrixView<const T> x, std::span<const int> rows, std::span<const T> factor = {}) {
  const auto some = scratch_matrix(tape, rows.size(), x.cols);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    T* __restrict to = some.row(i);
    const T* from = x.row(rows[i]);
    if (factor.empty())
      std::copy_n(from, x.cols, to);
    else
      for (std::size_t j = 0; j < x.cols; ++j) to[j] = factor[i] * from[j];
  }
  return some;
}

/// These rows of x: a block of x itself if they are evenly spaced, else a copy.
template <class T>
Block<const T> rows_of(Tape<T>& tape, MatrixView<const T> x, std::span<const int> rows) {
  const auto step = spacing(rows);
  if (step == 0) return taken(tape, x, rows);
  Block<const T> block(x);
  if (!rows.empty()) block.data = x.row(rows[0]);
  block.rows = rows.size();
  block.stride = step * x.cols;
  return block;
}

/// BLAS is not instrumented: under the address sanitizer its operands are checked before the call.
template <class T>
void require_readable([[maybe_unused]] const char* operand, [[maybe_unused]] const Block<T>& x) {
  if constexpr (poisoning)
    for (std::size_t r = 0; r < x.rows; ++r)
      if (poisoned(x.data + r * x.stride, x.cols * sizeof(T)))
        throw Bug(std::string("gemm: unallocated memory in row ") + std::to_string(r) + " of " + operand);
}

}  // namespace

template <class T>
void gemm(const Block<const T>& a, bool transpose_a, const Block<const T>& b, bool transpose_b, const Block<T>& c, T beta,
          T alpha) {
  const std::size_t inner = transpose_a ? a.rows : a.cols;
  if ((transpose_a ? a.cols : a.rows) != c.rows || (transpose_b ? b.rows : b.cols) != c.cols ||
      (transpose_b ? b.cols : b.rows) != inner)
    throw Bug("gemm: shapes do not match");
  if (c.rows == 0 || c.cols == 0) return;
  if (inner == 0) {
    for (std::size_t r = 0; beta == 0 && r < c.rows; ++r) std::fill_n(c.data + r * c.stride, c.cols, T{0});
    return;
  }
  const kernels::Strided<T> left{a.data, transpose_a ? 1 : a.stride, transpose_a ? a.stride : 1};
  const kernels::Strided<T> right{b.data, transpose_b ? 1 : b.stride, transpose_b ? b.stride : 1};
  if (c.rows * c.cols * inner <= kernels::small_product) {
    kernels::multiply_small<T>(left, right, c.data, c.stride, c.rows, inner, c.cols, beta, alpha);
    return;
  }
  const auto path = kernels::fastest(right, c.rows, inner, c.cols);
  if (path == kernels::GemmPath::direct)
    return kernels::multiply_registers<T>(left, right, {c.data, c.stride, 1, beta, alpha}, c.rows, inner, c.cols);
  if (path == kernels::GemmPath::turned)
    return kernels::multiply_registers<T>(turned(right), turned(left), {c.data, 1, c.stride, beta, alpha}, c.cols, inner,
                                          c.rows);
  require_readable("a", a);
  require_readable("b", b);
  require_readable("c", c);
  const auto size = [](std::size_t n) { return static_cast<xt::blas_index_t>(n); };
  const auto turn = [](bool transpose) { return transpose ? cxxblas::Trans : cxxblas::NoTrans; };
  cxxblas::gemm<xt::blas_index_t>(cxxblas::RowMajor, turn(transpose_a), turn(transpose_b), size(c.rows), size(c.cols),
                                  size(inner), alpha, a.data, size(a.stride), b.data, size(b.stride), beta, c.data,
                                  size(c.stride));
}

template <class T>
void put_linear(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> bias, MatrixView<T> out) {
  if (bias.data)
    for (std::size_t r = 0; r < out.rows; ++r) std::copy_n(bias.data, out.cols, out.row(r));
  gemm<T>(x, false, weight, true, out, bias.data ? T{1} : T{0});
}

// With g = diag(factor) slope the factors are applied to the rows of x and gx, which are often shorter than those of g:
// gx = factor (slope W), gW = slope' (factor x)
template <class T>
void linear_backward(Tape<T>& tape, Var<T> x, Var<T> weight, Var<T> bias, MatrixView<const T> slope,
                     std::span<const T> factor) {
  const auto live = live_rows(tape, slope, factor);
  const bool all = live.size() == slope.rows, scaled = !factor.empty();
  const auto d = rows_of(tape, slope, live);
  const auto by = tape.template scratch<T>(live.size());  // the factors of `live`
  for (std::size_t i = 0; i < by.size(); ++i) by[i] = scaled ? factor[live[i]] : T{1};
  if (tape.needs_gradient(x)) {
    const auto sink = tape.sink(x);
    const auto w = tape.value(weight);
    if (all && !scaled) {
      gemm<T>(d, false, w, false, sink.to, sink.beta());
    } else {
      const auto to = sink.scattered(), product = scratch_matrix(tape, live.size(), to.cols);
      gemm<T>(d, false, w, false, product);
      for (std::size_t i = 0; i < live.size(); ++i) {
        T* __restrict row = to.row(live[i]);
        const T* from = product.row(i);
        for (std::size_t j = 0; j < to.cols; ++j) row[j] += by[i] * from[j];
      }
    }
  }
  if (tape.needs_gradient(weight)) {
    const auto sink = tape.sink(weight);
    const auto in = tape.value(x);
    const auto rows = scaled ? taken(tape, in, live, std::span<const T>(by)) : rows_of(tape, in, live);
    gemm<T>(d, true, rows, false, sink.to, sink.beta());
  }
  if (!bias || !tape.needs_gradient(bias)) return;
  const auto sink = tape.sink(bias);
  kernels::column_sums(d.data, d.rows, d.cols, sink.to.data, sink.first, by.data(), d.stride);
}

// y = x W' + b; gx = g W, gW = g' x, gb = column sums of g; all over the nonzero rows of g
template <class T>
Var<T> linear(Var<T> x, Var<T> weight, Var<T> bias) {
  require_shapes(x.cols() == weight.cols() && (!bias || (bias.rows() == 1 && bias.cols() == weight.rows())), "linear",
                 {x, weight, bias});
  auto y = x.tape->output(x.rows(), weight.rows(), {x, weight, bias});
  put_linear<T>(x.value(), weight.value(), bias ? bias.value() : MatrixView<const T>{}, x.tape->mutable_value(y));
  x.tape->on_backward({y}, [x, weight, bias, y](Tape<T>& tape) { linear_backward(tape, x, weight, bias, tape.cotangent(y)); });
  return y;
}

// y = base + x W'; gbase = g, gx = g W, gW = g' x
template <class T>
Var<T> add_linear(Var<T> base, Var<T> x, Var<T> weight) {
  require_shapes(x.cols() == weight.cols() && base.rows() == x.rows() && base.cols() == weight.rows(), "add_linear",
                 {base, x, weight});
  if (base.id == x.id || base.id == weight.id) throw Bug("add_linear: the base is overwritten, so it cannot be an input");
  auto y = x.tape->output_over(base, {base, x, weight});
  gemm<T>(x.value(), false, weight.value(), true, x.tape->mutable_value(y), T{1});
  x.tape->on_backward({y}, [base, x, weight, y](Tape<T>& tape) {
    linear_backward(tape, x, weight, Var<T>{}, tape.cotangent(y));
    tape.pass_on(y, base);
  });
  return y;
}

// y = a b; ga = g b', gb = a' g
template <class T>
Var<T> matmul(Var<T> a, Var<T> b) {
  require_shapes(a.cols() == b.rows(), "matmul", {a, b});
  auto y = a.tape->output(a.rows(), b.cols(), {a, b});
  gemm<T>(a.value(), false, b.value(), false, a.tape->mutable_value(y));
  a.tape->on_backward({y}, [a, b, y](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    if (tape.needs_gradient(a)) {
      const auto sink = tape.sink(a);
      gemm<T>(g, false, tape.value(b), true, sink.to, sink.beta());
    }
    if (tape.needs_gradient(b)) {
      const auto sink = tape.sink(b);
      gemm<T>(tape.value(a), true, g, false, sink.to, sink.beta());
    }
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                                                                             \
  template void gemm(const Block<const T>&, bool, const Block<const T>&, bool, const Block<T>&, T, T);      \
  template Var<T> linear(Var<T>, Var<T>, Var<T>);                                                           \
  template void put_linear(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>, MatrixView<T>);   \
  template void linear_backward(Tape<T>&, Var<T>, Var<T>, Var<T>, MatrixView<const T>, std::span<const T>); \
  template Var<T> add_linear(Var<T>, Var<T>, Var<T>);                                                       \
  template Var<T> matmul(Var<T>, Var<T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
