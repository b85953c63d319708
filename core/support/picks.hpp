// How many options each row's subset has.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace hardgrad {

/// k of each row: the same for all, or by row. A view.
struct Picks {
  Picks(int k) : same(k) {}  // NOLINT: a number stands for itself
  Picks(std::span<const int> k) : of_row(k) {}
  Picks(const std::vector<int>& k) : of_row(k) {}
  int operator[](std::size_t row) const { return of_row.empty() ? same : of_row[row]; }

  int same = 0;
  std::span<const int> of_row = {};  ///< [R]; empty: `same`
};

}  // namespace hardgrad
