// The mean of each example's items, or of those that are picked.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"

namespace hardgrad {

/// values [items, D] -> [B, D].
template <class T>
Var<T> means(Var<T> values, const Items& items) {
  const auto share = values.tape->constant(items.examples(), items.most());
  std::vector<int> example(items.examples());
  std::iota(example.begin(), example.end(), 0);
  for (int b : example)
    std::fill_n(values.tape->mutable_value(share).row(b), items.count(b), T{1} / static_cast<T>(items.count(b)));
  return mix(share, values, std::span<const int>(example), items);
}

/// values [items, D] over the number of picks of their example: `subset_size`, or all its items if they are fewer. The sum of
/// the picked ones is then their mean.
template <class T>
Var<T> shares(Var<T> values, const Items& items, int subset_size) {
  if (subset_size == 1) return values;
  const auto share = values.tape->constant(items.total(), 1);
  for (int b = 0; b < static_cast<int>(items.examples()); ++b)
    for (int i = 0; i < items.count(b); ++i)
      values.tape->mutable_value(share)(items.row(b, i), 0) = T{1} / static_cast<T>(std::min(subset_size, items.count(b)));
  return scale_rows(values, share);
}

}  // namespace hardgrad
