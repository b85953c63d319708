// l = x W' + b; loss[r] = sum_c max(l, 0) + log(1 + exp(-|l|)) - y l, accurate for large |l|. Its slope d = sig(l) - y replaces l
// in memory in the same pass. The cotangents g [R] of the losses are applied to the rows of x and gx (linear_backward).
#include "core/autodiff/binary_cross_entropy.hpp"

#include "core/autodiff/product.hpp"
#include "core/autodiff/require.hpp"
#include "core/autodiff/scratch.hpp"
#include "core/kernels/functions.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {
namespace {

/// loss [n] of each bit; its slope replaces the log odds.
template <class T>
void bits(const T* seen, std::size_t n, T* odds, T* loss) {
  using Batch = kernels::Batch<T>;
  const Batch zero(T{0}), one(T{1});
  kernels::for_lanes<T>(n, [&](auto lane) {
    const Batch l = lane.load(odds), y = lane.load(seen);
    const Batch small = kernels::exp<T>(-xsimd::abs(l));
    lane.store(loss, xsimd::max(l, zero) + kernels::log1p_unit<T>(small) - y * l);
    lane.store(odds, xsimd::select(l < zero, small, one) / (one + small) - y);
  });
}

}  // namespace

template <class T>
Var<T> linear_binary_cross_entropy(Var<T> x, Var<T> weight, Var<T> bias, Var<T> y, std::span<const int> index) {
  require_shapes(x.cols() == weight.cols() && (!bias || (bias.rows() == 1 && bias.cols() == weight.rows())) &&
                     weight.rows() == y.cols() && x.rows() == index.size(),
                 "linear_binary_cross_entropy", {x, weight, bias, y});
  auto& tape = *x.tape;
  const std::size_t R = x.rows(), C = y.cols();
  auto loss = tape.output(R, 1, {x, weight, bias});
  const auto l = scratch_matrix(tape, R, C);  // then the slopes
  put_linear<T>(x.value(), weight.value(), bias ? bias.value() : MatrixView<const T>{}, l);
  const auto each = tape.template scratch<T>(C);
  const auto seen = y.value();
  for (std::size_t r = 0; r < R; ++r) {
    bits(seen.row(index[r]), C, l.row(r), each.data());
    tape.mutable_value(loss).data[r] = static_cast<T>(kernels::row_sum(each.data(), C));
  }
  tape.on_backward({loss}, [x, weight, bias, loss, l](Tape<T>& tape) {
    linear_backward<T>(tape, x, weight, bias, l, tape.cotangent(loss).span());
  });
  return loss;
}

template Var<float> linear_binary_cross_entropy(Var<float>, Var<float>, Var<float>, Var<float>, std::span<const int>);
template Var<double> linear_binary_cross_entropy(Var<double>, Var<double>, Var<double>, Var<double>, std::span<const int>);

}  // namespace hardgrad
