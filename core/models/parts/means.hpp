// The mean of each example's items.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/autodiff/attention.hpp"

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

}  // namespace hardgrad
