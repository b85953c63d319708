// A cost for each joint outcome of several columns: an entry of a table, or a mixture of its entries.
#pragma once

#include <span>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/choice/choice.hpp"

namespace hardgrad {

/// [R, 1] the costs of the outcomes of `choice`, D columns of S options each, from `tables` [E, S^D] in which the last column's
/// option varies fastest. Row r uses table which[r]. Relaxed weights mix the entries, multiplied over the columns: the cost is
/// multilinear in them.
template <class T>
Var<T> entries_of_tables(Tape<T>& tape, const Choice<T>& choice, MatrixView<const double> tables, std::span<const int> which,
                         int columns, int options) {
  const std::size_t rows = choice.rows->size();
  if (choice.hard()) {
    const auto& option = choice.option();
    auto cost = tape.constant(rows, 1);
    for (std::size_t r = 0; r < rows; ++r) {
      std::size_t entry = 0;
      for (int d = 0; d < columns; ++d) entry = entry * options + option[r * columns + d];
      tape.mutable_value(cost).data[r] = static_cast<T>(tables(which[r], entry));
    }
    return cost;
  }
  const std::vector<T> numbers(tables.data, tables.data + tables.size());
  auto left = gather_rows(tape.constant(MatrixView<const T>{numbers.data(), tables.rows, tables.cols}), which);
  const auto weights = reshape(choice.weights(), columns * options);  // [R, D S]
  for (int d = 0; d < columns; ++d) {  // [R, S rest] -> [R, rest]: mix over the options of column d
    const std::size_t rest = left.cols() / options;
    Var<T> mixed;
    for (int o = 0; o < options; ++o) {
      const auto share = scale_rows(slice_columns(left, o * rest, rest), slice_columns(weights, d * options + o, 1));
      mixed = mixed ? add(mixed, share) : share;
    }
    left = mixed;
  }
  return left;
}

}  // namespace hardgrad
