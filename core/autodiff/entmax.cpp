#include <algorithm>
#include <cmath>

#include "core/autodiff/require.hpp"
#include "core/autodiff/softmax.hpp"

namespace hardgrad {

// The sum of the weights is convex and falls in tau. Newton's steps from the left, where the largest option alone has weight 1,
// rise to the solution without passing it; for alpha = 2 they reach it after a finite number of steps.
template <class T>
double entmax_threshold(const T* x, std::size_t n, double alpha) {
  double largest = -INFINITY;
  for (std::size_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]);
    if (std::isnan(v)) return v;
    largest = std::max(largest, v);
  }
  if (largest == -INFINITY) return INFINITY;  // no option has weight
  double tau = (alpha - 1) * largest - 1;
  for (;;) {
    double sum = 0, slope = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (const double p = entmax_weight(static_cast<double>(x[i]), tau, alpha); p > 0) {
        sum += p;
        slope += std::pow(p, 2 - alpha) / (alpha - 1);
      }
    const double next = tau + (sum - 1) / slope;
    if (!(next > tau)) return tau;
    tau = next;
  }
}

// With s = p^(2 - alpha) on the support and 0 outside: gx = s (g - (sum of s g) / (sum of s))
template <class T>
Var<T> entmax(Var<T> x, std::span<const int> options, double alpha) {
  require_shapes(options.size() == x.rows(), "entmax", {x});
  auto p = x.tape->output(x.rows(), x.cols(), {x});
  const auto in = x.value();
  const auto out = x.tape->mutable_value(p);
  for (std::size_t r = 0; r < in.rows; ++r) {
    const auto n = static_cast<std::size_t>(options[r]);
    if (options[r] < 0 || n > in.cols) throw Bug("entmax: more options than columns");
    const double tau = entmax_threshold(in.row(r), n, alpha);
    for (std::size_t j = 0; j < in.cols; ++j)
      out(r, j) = j < n ? static_cast<T>(entmax_weight(static_cast<double>(in(r, j)), tau, alpha)) : T{0};
  }
  if (!x.tape->needs_gradient(p)) return p;
  x.tape->on_backward({p}, [x, p, alpha](Tape<T>& tape) {
    const auto g = tape.cotangent(p), out = tape.value(p);
    const auto to = tape.sink(x).scattered();
    const auto scale = [&](std::size_t r, std::size_t j) {
      return out(r, j) == 0 ? 0 : std::pow(static_cast<double>(out(r, j)), 2 - alpha);
    };
    for (std::size_t r = 0; r < g.rows; ++r) {
      double total = 0, scales = 0;
      for (std::size_t j = 0; j < g.cols; ++j) {
        total += scale(r, j) * static_cast<double>(g(r, j));
        scales += scale(r, j);
      }
      for (std::size_t j = 0; j < g.cols; ++j)
        if (out(r, j) != 0) to(r, j) += static_cast<T>(scale(r, j) * (static_cast<double>(g(r, j)) - total / scales));
    }
  });
  return p;
}

#define HARDGRAD_INSTANTIATE(T)                                    \
  template double entmax_threshold(const T*, std::size_t, double); \
  template Var<T> entmax(Var<T>, std::span<const int>, double);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
