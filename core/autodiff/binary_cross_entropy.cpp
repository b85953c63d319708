// loss[r] = sum_c max(l, 0) + log(1 + exp(-|l|)) - y l, accurate for large |l|. The slope in l is sig(l) - y, computed in the
// same pass over memory; gl[r, c] = g[r] (sig(l[r, c]) - y[r, c]).
#include "core/autodiff/binary_cross_entropy.hpp"

#include "core/autodiff/require.hpp"
#include "core/kernels/functions.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {
namespace {

/// loss [n] of each bit, and its slope in the log odds.
template <class T>
void bits(const T* odds, const T* seen, std::size_t n, T* loss, T* slope) {
  using Batch = kernels::Batch<T>;
  const Batch zero(T{0}), one(T{1});
  kernels::for_lanes<T>(n, [&](auto lane) {
    const Batch l = lane.load(odds), y = lane.load(seen);
    const Batch small = kernels::exp<T>(-xsimd::abs(l));
    lane.store(loss, xsimd::max(l, zero) + kernels::log1p_unit<T>(small) - y * l);
    lane.store(slope, xsimd::select(l < zero, small, one) / (one + small) - y);
  });
}

}  // namespace

template <class T>
Var<T> binary_cross_entropy(Var<T> l, Var<T> y, std::span<const int> index) {
  require_shapes(l.cols() == y.cols() && l.rows() == index.size(), "binary_cross_entropy", {l, y});
  auto& tape = *l.tape;
  const std::size_t R = l.rows(), C = l.cols();
  auto loss = tape.output(R, 1, {l});
  const auto slope = tape.template scratch<T>(R * C), each = tape.template scratch<T>(C);
  const auto odds = l.value(), seen = y.value();
  for (std::size_t r = 0; r < R; ++r) {
    bits(odds.row(r), seen.row(index[r]), C, each.data(), slope.data() + r * C);
    tape.mutable_value(loss).data[r] = static_cast<T>(kernels::row_sum(each.data(), C));
  }
  tape.on_backward({loss}, [l, loss, slope](Tape<T>& tape) {
    if (!tape.needs_gradient(l)) return;
    const auto g = tape.cotangent(loss);
    const auto sink = tape.sink(l);
    for (std::size_t r = 0; r < g.rows; ++r) {
      const T* d = slope.data() + r * sink.to.cols;
      T* to = sink.to.row(r);
      const T weight = g.data[r];
      if (sink.first)
        for (std::size_t c = 0; c < sink.to.cols; ++c) to[c] = weight * d[c];
      else
        for (std::size_t c = 0; c < sink.to.cols; ++c) to[c] += weight * d[c];
    }
  });
  return loss;
}

template Var<float> binary_cross_entropy(Var<float>, Var<float>, std::span<const int>);
template Var<double> binary_cross_entropy(Var<double>, Var<double>, std::span<const int>);

}  // namespace hardgrad
