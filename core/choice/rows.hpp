// Rows are branches. A model runs once on R rows. A choice gives R' new rows, and each continues one of the R rows.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

namespace hardgrad {

struct Rows;
using RowsPtr = std::shared_ptr<const Rows>;

/// The rows at one point of a run, and the choice that made them. Rows of one example are contiguous.
struct Rows {
  std::vector<int> example;  ///< [R] position of the row's example in the batch, non-decreasing
  std::vector<int> replica;  ///< [R] ordinal of the row among its example's rows
  std::vector<int> parent;   ///< [R] the row of `origin` that the row continues; empty for the root
  RowsPtr origin;            ///< the rows that chose; null for the root
  int step = -1;             ///< index of the choice that made these rows; -1 for the root
  int copies = 1;            ///< rows per example if all examples have equally many, otherwise 0

  std::size_t size() const { return example.size(); }
  bool is_root() const { return !origin; }
  /// True if choice `step` made these rows or an ancestor of them.
  bool descends_from(int step) const {
    for (auto* rows = this; rows; rows = rows->origin.get())
      if (rows->step == step) return true;
    return false;
  }

  /// One row per example.
  static RowsPtr root(int examples) {
    auto rows = std::make_shared<Rows>();
    rows->example.resize(examples);
    std::iota(rows->example.begin(), rows->example.end(), 0);
    rows->replica.assign(examples, 0);
    return rows;
  }
  /// The rows after choice `step` at `origin`; `parent` [R'] must keep the examples contiguous.
  static RowsPtr after(RowsPtr origin, std::vector<int> parent, int step);
};

}  // namespace hardgrad
