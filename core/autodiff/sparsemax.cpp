#include "core/autodiff/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/autodiff/require.hpp"

namespace hardgrad {

// With x sorted in descending order, the support is the longest prefix with 1 + k x_k > sum_{j <= k} x_j;
// tau = (its sum - 1) / k.
template <class T>
double sparsemax_threshold(const T* x, std::size_t n) {
  std::vector<double> sorted(x, x + n);
  for (double v : sorted)
    if (std::isnan(v)) return v;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  double total = 0, tau = std::numeric_limits<double>::infinity();  // for only -inf: no option has weight
  for (std::size_t k = 1; k <= n && 1 + static_cast<double>(k) * sorted[k - 1] > total + sorted[k - 1]; ++k) {
    total += sorted[k - 1];
    tau = (total - 1) / static_cast<double>(k);
  }
  return tau;
}

// y[r, j] = max(x[r, j] - tau_r, 0); gx = g - (mean of g over the support) on the support, 0 outside
template <class T>
Var<T> sparsemax(Var<T> x, std::span<const int> options) {
  require_shapes(options.size() == x.rows(), "sparsemax", {x});
  auto y = x.tape->output(x.rows(), x.cols(), {x});
  const auto in = x.value();
  const auto out = x.tape->mutable_value(y);
  for (std::size_t r = 0; r < in.rows; ++r) {
    const auto n = static_cast<std::size_t>(options[r]);
    if (options[r] < 0 || n > in.cols) throw Bug("sparsemax: more options than columns");
    const double tau = sparsemax_threshold(in.row(r), n);
    for (std::size_t j = 0; j < in.cols; ++j) {
      const double above = static_cast<double>(in(r, j)) - tau;
      out(r, j) = j < n && !(above <= 0) ? static_cast<T>(above) : T{0};
    }
  }
  if (!x.tape->needs_gradient(y)) return y;
  x.tape->on_backward({y}, [x, y](Tape<T>& tape) {
    const auto g = tape.cotangent(y), out = tape.value(y);
    const auto to = tape.sink(x).scattered();
    for (std::size_t r = 0; r < g.rows; ++r) {
      double total = 0, support = 0;
      for (std::size_t j = 0; j < g.cols; ++j)
        if (out(r, j) != 0) {
          total += static_cast<double>(g(r, j));
          ++support;
        }
      for (std::size_t j = 0; j < g.cols; ++j)
        if (out(r, j) != 0) to(r, j) += static_cast<T>(static_cast<double>(g(r, j)) - total / support);
    }
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                               \
  template double sparsemax_threshold(const T*, std::size_t); \
  template Var<T> sparsemax(Var<T>, std::span<const int>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
