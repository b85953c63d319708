// Each operation has its formula y = f(a) and its cotangent rule; g is the cotangent of y. A cotangent of exactly 0 stays 0
// even times infinity: an unused entry takes no gradient.
#include "core/autodiff/elementwise.hpp"

#include <cmath>

#include "core/autodiff/require.hpp"
#include "core/kernels/functions.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {
namespace {

/// y[i] = f(flat i), with a's shape.
template <class T, class F>
Var<T> same_as(Var<T> a, std::initializer_list<Var<T>> inputs, F f) {
  auto y = a.tape->output(a.rows(), a.cols(), inputs);
  T* out = a.tape->mutable_value(y).data;
  for (std::size_t i = 0, n = y.value().size(); i < n; ++i) out[i] = f(i);
  return y;
}

/// The same with SIMD registers.
template <class T, class F>
Var<T> mapped(Var<T> a, F f) {
  auto y = a.tape->output(a.rows(), a.cols(), {a});
  kernels::map(a.value().data, a.tape->mutable_value(y).data, y.value().size(), f);
  return y;
}

/// Cotangent of `a`: ga[i] (+)= f(i).
template <class T, class F>
void give(Tape<T>& tape, Var<T> a, F f) {
  if (tape.needs_gradient(a)) tape.sink(a).accumulate(f);
}

/// Back-propagates through an operation with one input: ga[i] (+)= f(g[i], a[i], y[i]).
template <class T, class F>
Var<T> unary_rule(Var<T> a, Var<T> y, F f) {
  a.tape->on_backward({y}, [a, y, f](Tape<T>& tape) {
    const T *g = tape.cotangent(y).data, *x = tape.value(a).data, *v = tape.value(y).data;
    give(tape, a, [=](std::size_t i) { return f(g[i], x[i], v[i]); });
  });
  return y;
}

}  // namespace

// y = a + b; ga = g, gb = g
template <class T>
Var<T> add(Var<T> a, Var<T> b) {
  require_shapes(same_shape(a, b), "add", {a, b});
  const T *p = a.value().data, *q = b.value().data;
  auto y = same_as(a, {a, b}, [=](std::size_t i) { return p[i] + q[i]; });
  a.tape->on_backward({y}, [a, b, y](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    give(tape, a, [=](std::size_t i) { return g[i]; });
    tape.pass_on(y, b);
  });
  return y;
}

// y = a - b; ga = g, gb = -g
template <class T>
Var<T> subtract(Var<T> a, Var<T> b) {
  require_shapes(same_shape(a, b), "subtract", {a, b});
  const T *p = a.value().data, *q = b.value().data;
  auto y = same_as(a, {a, b}, [=](std::size_t i) { return p[i] - q[i]; });
  a.tape->on_backward({y}, [a, b, y](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    give(tape, a, [=](std::size_t i) { return g[i]; });
    give(tape, b, [=](std::size_t i) { return -g[i]; });
  });
  return y;
}

// y = a b; ga = g b, gb = g a
template <class T>
Var<T> multiply(Var<T> a, Var<T> b) {
  require_shapes(same_shape(a, b), "multiply", {a, b});
  const T *p = a.value().data, *q = b.value().data;
  auto y = same_as(a, {a, b}, [=](std::size_t i) { return p[i] * q[i]; });
  a.tape->on_backward({y}, [a, b, y](Tape<T>& tape) {
    const T *g = tape.cotangent(y).data, *p = tape.value(a).data, *q = tape.value(b).data;
    give(tape, a, [=](std::size_t i) { return g[i] == 0 ? T{0} : g[i] * q[i]; });
    give(tape, b, [=](std::size_t i) { return g[i] == 0 ? T{0} : g[i] * p[i]; });
  });
  return y;
}

// y = factor a + shift; ga = factor g
template <class T>
Var<T> affine(Var<T> a, T factor, T shift) {
  const T* p = a.value().data;
  auto y = factor == 0 ? same_as(a, {a}, [=](std::size_t) { return shift; })  // also where a is infinite
                       : same_as(a, {a}, [=](std::size_t i) { return factor * p[i] + shift; });
  return unary_rule(a, y, [factor](T g, T, T) { return factor * g; });
}

// y[i] = factor x[i, column] + shift; gx[i, column] = factor g[i], 0 in the other columns
template <class T>
Var<T> affine_column(Var<T> x, std::size_t column, std::size_t cols, T factor, T shift) {
  require_shapes(column < x.cols() && cols > 0 && x.rows() % cols == 0, "affine_column", {x});
  auto y = x.tape->output(x.rows() / cols, cols, {x});
  const std::size_t S = x.cols(), n = x.rows();
  const T* from = x.value().data + column;
  T* __restrict out = x.tape->mutable_value(y).data;
  for (std::size_t i = 0; i < n; ++i) out[i] = factor * from[i * S] + shift;
  x.tape->on_backward({y}, [x, y, column, factor](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto sink = tape.sink(x);
    const std::size_t S = sink.to.cols, n = sink.to.rows;
    T* __restrict to = sink.to.data;
    if (sink.first && S == 2) {
      const T low = column == 0 ? factor : T{0}, high = column == 0 ? T{0} : factor;
      for (std::size_t i = 0; i < n; ++i) {
        to[2 * i] = low * g[i];
        to[2 * i + 1] = high * g[i];
      }
      return;
    }
    sink.scattered();
    for (std::size_t i = 0; i < n; ++i) to[i * S + column] += factor * g[i];
  });
  return y;
}

// y[r, j] = x[r, j] + b[j]; gx = g, gb[j] = sum_r g[r, j]
template <class T>
Var<T> add_row(Var<T> x, Var<T> b) {
  require_shapes(b.rows() == 1 && b.cols() == x.cols(), "add_row", {x, b});
  auto y = x.tape->output(x.rows(), x.cols(), {x, b});
  const auto in = x.value(), row = b.value();
  const auto out = x.tape->mutable_value(y);
  for (std::size_t r = 0; r < out.rows; ++r)
    for (std::size_t j = 0; j < out.cols; ++j) out(r, j) = in(r, j) + row.data[j];
  x.tape->on_backward({y}, [x, b, y](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    give(tape, x, [p = g.data](std::size_t i) { return p[i]; });
    if (!tape.needs_gradient(b)) return;
    const auto sink = tape.sink(b);
    kernels::column_sums(g.data, g.rows, g.cols, sink.to.data, sink.first);
  });
  return y;
}

// y[r, j] = x[r, j] w[r]; gx = g w, gw[r] = sum_j g[r, j] x[r, j]. A weight of 0 gives an exact 0 for any x.
template <class T>
Var<T> scale_rows(Var<T> x, Var<T> w) {
  require_shapes(w.cols() == 1 && w.rows() == x.rows(), "scale_rows", {x, w});
  auto y = x.tape->output(x.rows(), x.cols(), {x, w});
  const auto in = x.value(), weight = w.value();
  const auto out = x.tape->mutable_value(y);
  for (std::size_t r = 0; r < out.rows; ++r)
    if (const T by = weight.data[r]; by == 0)
      std::fill_n(out.row(r), out.cols, T{0});
    else
      for (std::size_t j = 0; j < out.cols; ++j) out(r, j) = in(r, j) * by;
  x.tape->on_backward({y}, [x, w, y](Tape<T>& tape) {
    const auto g = tape.cotangent(y), in = tape.value(x), weight = tape.value(w);
    if (tape.needs_gradient(x)) {
      const auto sink = tape.sink(x);
      for (std::size_t r = 0; r < g.rows; ++r)
        Sink<T>{{sink.to.row(r), 1, g.cols}, sink.first}.accumulate(
            [gr = g.row(r), by = weight.data[r]](std::size_t j) { return gr[j] == 0 ? T{0} : gr[j] * by; });
    }
    give(tape, w, [&](std::size_t r) { return static_cast<T>(kernels::live_dot(g.row(r), in.row(r), g.cols)); });
  });
  return y;
}

// y = tanh a; ga = g (1 - y^2)
template <class T>
Var<T> tanh(Var<T> a) {
  auto y = mapped(a, [](const kernels::Batch<T>& x) { return kernels::tanh<T>(x); });
  return unary_rule(a, y, [](T g, T, T y) { return g * (T{1} - y * y); });
}

// y = 1 / (1 + exp(-a)); ga = g y (1 - y)
template <class T>
Var<T> sigmoid(Var<T> a) {
  auto y = mapped(a, [](const kernels::Batch<T>& x) { return kernels::sigmoid<T>(x); });
  return unary_rule(a, y, [](T g, T, T y) { return g * y * (T{1} - y); });
}

// y = max(a, 0); ga = g where a > 0
template <class T>
Var<T> relu(Var<T> a) {
  const T* p = a.value().data;
  auto y = same_as(a, {a}, [=](std::size_t i) { return p[i] < 0 ? T{0} : p[i]; });  // NaN stays NaN
  return unary_rule(a, y, [](T g, T a, T) { return a > 0 ? g : T{0}; });
}

// y = a where a > 0, else slope a; ga = g where a > 0, else slope g
template <class T>
Var<T> leaky_relu(Var<T> a, T slope) {
  const T* p = a.value().data;
  auto y = same_as(a, {a}, [=](std::size_t i) { return p[i] < 0 ? slope * p[i] : p[i]; });
  return unary_rule(a, y, [slope](T g, T a, T) { return a > 0 ? g : slope * g; });
}

// y = exp a; ga = g y
template <class T>
Var<T> exp(Var<T> a) {
  auto y = mapped(a, [](const kernels::Batch<T>& x) { return kernels::exp<T>(x); });
  return unary_rule(a, y, [](T g, T, T y) { return y == 0 || g == 0 ? T{0} : g * y; });
}

// y = cos a; ga = -g sin a
template <class T>
Var<T> cos(Var<T> a) {
  const T* p = a.value().data;
  auto y = same_as(a, {a}, [=](std::size_t i) { return std::cos(p[i]); });
  return unary_rule(a, y, [](T g, T a, T) { return g == 0 ? T{0} : -g * std::sin(a); });
}

// y = log a; ga = g / a
template <class T>
Var<T> log(Var<T> a) {
  auto y = mapped(a, [](const kernels::Batch<T>& x) { return kernels::log<T>(x); });
  return unary_rule(a, y, [](T g, T a, T) { return g == 0 ? T{0} : g / a; });
}

// y = a^2; ga = 2 a g
template <class T>
Var<T> square(Var<T> a) {
  const T* p = a.value().data;
  auto y = same_as(a, {a}, [=](std::size_t i) { return p[i] * p[i]; });
  return unary_rule(a, y, [](T g, T a, T) { return g == 0 ? T{0} : 2 * a * g; });
}

// y = log(1 + exp a) = max(a, 0) + log(1 + exp(-|a|)); ga = g / (1 + exp(-a))
template <class T>
Var<T> softplus(Var<T> a) {
  using Batch = kernels::Batch<T>;
  auto y = mapped(a, [](const Batch& x) {
    return xsimd::max(Batch(T{0}), x) + kernels::log1p_unit<T>(kernels::exp<T>(-xsimd::abs(x)));  // a NaN second operand stays
  });
  a.tape->on_backward({y}, [a, y](Tape<T>& tape) {
    const T *g = tape.cotangent(y).data, *x = tape.value(a).data;
    const auto sink = tape.sink(a);
    kernels::for_lanes<T>(sink.to.size(), [&](auto lane) {
      const Batch slope = lane.load(g), none(T{0});
      const Batch give = xsimd::select(slope == none, none, slope * kernels::sigmoid<T>(lane.load(x)));
      lane.store(sink.to.data, sink.first ? give : lane.load(sink.to.data) + give);
    });
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                                          \
  template Var<T> add(Var<T>, Var<T>);                                   \
  template Var<T> subtract(Var<T>, Var<T>);                              \
  template Var<T> multiply(Var<T>, Var<T>);                              \
  template Var<T> affine(Var<T>, T, T);                                  \
  template Var<T> affine_column(Var<T>, std::size_t, std::size_t, T, T); \
  template Var<T> add_row(Var<T>, Var<T>);                               \
  template Var<T> scale_rows(Var<T>, Var<T>);                            \
  template Var<T> tanh(Var<T>);                                          \
  template Var<T> sigmoid(Var<T>);                                       \
  template Var<T> relu(Var<T>);                                          \
  template Var<T> leaky_relu(Var<T>, T);                                 \
  template Var<T> exp(Var<T>);                                           \
  template Var<T> cos(Var<T>);                                           \
  template Var<T> log(Var<T>);                                           \
  template Var<T> square(Var<T>);                                        \
  template Var<T> softplus(Var<T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
