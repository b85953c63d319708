#include "core/autodiff/elementwise.hpp"

#include "core/autodiff/require.hpp"

namespace hardgrad {
namespace {

/// y[r, j] = a[r, j] / b with b at (r, j), or at r alone; ga = g / b, gb = -g y / b. As
/// everywhere, a cotangent of exactly 0 stays 0.
template <class T>
Var<T> quotient(Var<T> a, Var<T> b) {
  auto y = a.tape->output(a.rows(), a.cols(), {a, b});
  const auto top = a.value(), bottom = b.value();
  const auto out = a.tape->mutable_value(y);
  const std::size_t every = bottom.cols == top.cols ? 1 : 0;  // 1: a divisor for each column; 0: one for the row
  for (std::size_t r = 0; r < out.rows; ++r)
    for (std::size_t j = 0; j < out.cols; ++j) out(r, j) = top(r, j) / bottom(r, every * j);
  a.tape->on_backward({y}, [a, b, y, every](Tape<T>& tape) {
    const auto g = tape.cotangent(y), v = tape.value(y), bottom = tape.value(b);
    const std::size_t cols = g.cols;
    const auto divisor = [&](std::size_t i) { return bottom(i / cols, every * (i % cols)); };
    if (tape.needs_gradient(a))
      tape.sink(a).accumulate([&](std::size_t i) { return g.data[i] == 0 ? T{0} : g.data[i] / divisor(i); });
    if (!tape.needs_gradient(b)) return;
    const auto slope = [&](std::size_t i) { return g.data[i] == 0 ? 0.0 : -double(g.data[i]) * v.data[i] / divisor(i); };
    tape.sink(b).accumulate([&](std::size_t i) {
      if (every) return static_cast<T>(slope(i));
      double sum = 0;
      for (std::size_t j = 0; j < cols; ++j) sum += slope(i * cols + j);
      return static_cast<T>(sum);
    });
  });
  return y;
}

}  // namespace

template <class T>
Var<T> divide(Var<T> a, Var<T> b) {
  require_shapes(same_shape(a, b), "divide", {a, b});
  return quotient(a, b);
}

template <class T>
Var<T> divide_rows(Var<T> x, Var<T> w) {
  require_shapes(w.cols() == 1 && w.rows() == x.rows(), "divide_rows", {x, w});
  return quotient(x, w);
}

#define HARDGRAD_INSTANTIATE(T)           \
  template Var<T> divide(Var<T>, Var<T>); \
  template Var<T> divide_rows(Var<T>, Var<T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
