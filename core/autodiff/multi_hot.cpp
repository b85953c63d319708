#include "core/autodiff/multi_hot.hpp"

#include <numeric>

#include "core/autodiff/require.hpp"
#include "core/kernels/column_lists.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {
namespace {

/// The rows of each column, by counting; in memory of the tape.
template <class T>
kernels::ColumnLists lists_of(Tape<T>& tape, const MultiHot& x, std::size_t columns) {
  const auto first = tape.template scratch<int>(columns + 1), next = tape.template scratch<int>(columns);
  std::fill(first.begin(), first.end(), 0);
  for (int k : x.places)
    if (k >= 0) ++first[static_cast<std::size_t>(k) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::copy_n(first.begin(), columns, next.begin());
  const auto row = tape.template scratch<int>(static_cast<std::size_t>(first[columns]));
  for (std::size_t i = 0; i < x.places.size(); ++i)
    if (x.places[i] >= 0) row[next[x.places[i]]++] = static_cast<int>(i / x.count);
  return {first, row};
}

}  // namespace

// y[r] = b + sum_k W[:, k] over the places k of row r; gW[:, k] = sum of the g[r] of these rows, gb = column sums of g
template <class T>
Var<T> linear(const MultiHot& x, Var<T> weight, Var<T> bias) {
  require_shapes(!bias || (bias.rows() == 1 && bias.cols() == weight.rows()), "linear of ones", {weight, bias});
  if (x.count == 0 || x.places.size() % x.count != 0) throw Bug("linear of ones: places are not a whole number of rows");
  require_indices("linear of ones", x.places, -1, weight.cols());
  auto& tape = *weight.tape;
  const std::size_t R = x.places.size() / x.count, O = weight.rows();
  auto y = tape.output(R, O, {weight, bias});
  const auto lists = lists_of(tape, x, weight.cols());
  const auto lines = tape.template scratch<T>(R * kernels::tile_side<T>);
  kernels::sum_columns(lists, weight.value().data, O, bias ? bias.value().data : nullptr, R, tape.mutable_value(y).data,
                       lines.data());
  tape.on_backward({y}, [weight, bias, y, lists, lines](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    if (tape.needs_gradient(weight)) {
      const auto sink = tape.sink(weight);
      kernels::scatter_columns(lists, g.data, g.rows, g.cols, sink.to.data, sink.first, lines.data());
    }
    if (!bias || !tape.needs_gradient(bias)) return;
    const auto sink = tape.sink(bias);
    kernels::column_sums(g.data, g.rows, g.cols, sink.to.data, sink.first);
  });
  return y;
}

template Var<float> linear(const MultiHot&, Var<float>, Var<float>);
template Var<double> linear(const MultiHot&, Var<double>, Var<double>);

}  // namespace hardgrad
