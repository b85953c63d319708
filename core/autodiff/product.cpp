// Products through xtensor-blas's cxxblas, which hands them to OpenBLAS.
#include "core/autodiff/product.hpp"

#include <xtensor-blas/xblas.hpp>

#include "core/autodiff/require.hpp"
#include "core/kernels/rows.hpp"
#include "core/support/poison.hpp"

#ifndef HAVE_CBLAS
#error "xtensor-blas would use its own slow products: HAVE_CBLAS must be on"
#endif
extern "C" void openblas_set_num_threads(int);

namespace hardgrad {
namespace {

// Parallelism is outside, over tasks: BLAS threads would only fight with them.
[[maybe_unused]] const bool one_blas_thread = (openblas_set_num_threads(1), true);

/// (+)= the gradient of y = x W' for x and W, given g.
template <class T>
void linear_backward(Tape<T>& tape, Var<T> x, Var<T> weight, MatrixView<const T> g) {
  if (tape.needs_gradient(x)) {
    const auto sink = tape.sink(x);
    gemm<T>(g, false, tape.value(weight), false, sink.to, sink.beta());
  }
  if (tape.needs_gradient(weight)) {
    const auto sink = tape.sink(weight);
    gemm<T>(g, true, tape.value(x), false, sink.to, sink.beta());
  }
}

/// BLAS is not instrumented: under the address sanitizer its operands are looked at before.
template <class T>
void require_readable([[maybe_unused]] const char* operand, [[maybe_unused]] const Block<T>& x) {
  if constexpr (poisoning)
    for (std::size_t r = 0; r < x.rows; ++r)
      if (poisoned(x.data + r * x.stride, x.cols * sizeof(T)))
        throw Bug(std::string("gemm: memory that nobody holds in row ") + std::to_string(r) + " of " + operand);
}

}  // namespace

template <class T>
void gemm(Block<const T> a, bool transpose_a, Block<const T> b, bool transpose_b, Block<T> c, T beta, T alpha) {
  const std::size_t inner = transpose_a ? a.rows : a.cols;
  if ((transpose_a ? a.cols : a.rows) != c.rows || (transpose_b ? b.rows : b.cols) != c.cols ||
      (transpose_b ? b.cols : b.rows) != inner)
    throw Bug("gemm: shapes do not fit");
  if (c.rows == 0 || c.cols == 0) return;
  if (inner == 0) {
    for (std::size_t r = 0; beta == 0 && r < c.rows; ++r) std::fill_n(c.data + r * c.stride, c.cols, T{0});
    return;
  }
  require_readable("a", a);
  require_readable("b", b);
  require_readable("c", c);
  const auto size = [](std::size_t n) { return static_cast<xt::blas_index_t>(n); };
  const auto turn = [](bool transpose) { return transpose ? cxxblas::Trans : cxxblas::NoTrans; };
  cxxblas::gemm<xt::blas_index_t>(cxxblas::RowMajor, turn(transpose_a), turn(transpose_b), size(c.rows), size(c.cols),
                                  size(inner), alpha, a.data, size(a.stride), b.data, size(b.stride), beta, c.data,
                                  size(c.stride));
}

// y = x W' + b; gx = g W, gW = g' x, gb = column sums of g
template <class T>
Var<T> linear(Var<T> x, Var<T> weight, Var<T> bias) {
  require_shapes(x.cols() == weight.cols() && (!bias || (bias.rows() == 1 && bias.cols() == weight.rows())), "linear",
                 {x, weight, bias});
  auto y = x.tape->output(x.rows(), weight.rows(), {x, weight, bias});
  const auto out = x.tape->mutable_value(y);
  if (bias)
    for (std::size_t r = 0; r < out.rows; ++r) std::copy_n(bias.value().data, out.cols, out.row(r));
  gemm<T>(x.value(), false, weight.value(), true, out, bias ? T{1} : T{0});
  x.tape->on_backward({y}, [x, weight, bias, y](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    linear_backward(tape, x, weight, g);
    if (!bias || !tape.needs_gradient(bias)) return;
    const auto sink = tape.sink(bias);
    kernels::column_sums(g.data, g.rows, g.cols, sink.to.data, sink.first);
  });
  return y;
}

// y = base + x W'; gbase = g, gx = g W, gW = g' x
template <class T>
Var<T> add_linear(Var<T> base, Var<T> x, Var<T> weight) {
  require_shapes(x.cols() == weight.cols() && base.rows() == x.rows() && base.cols() == weight.rows(), "add_linear",
                 {base, x, weight});
  if (base.id == x.id || base.id == weight.id) throw Bug("add_linear: the base is written over");
  auto y = x.tape->output_over(base, {base, x, weight});
  gemm<T>(x.value(), false, weight.value(), true, x.tape->mutable_value(y), T{1});
  x.tape->on_backward({y}, [base, x, weight, y](Tape<T>& tape) {
    linear_backward(tape, x, weight, tape.cotangent(y));
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

#define HARDGRAD_INSTANTIATE(T)                                                   \
  template void gemm(Block<const T>, bool, Block<const T>, bool, Block<T>, T, T); \
  template Var<T> linear(Var<T>, Var<T>, Var<T>);                                 \
  template Var<T> add_linear(Var<T>, Var<T>, Var<T>);                             \
  template Var<T> matmul(Var<T>, Var<T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
