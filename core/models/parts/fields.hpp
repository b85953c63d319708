// Fields of a batch on a tape.
#pragma once

#include <algorithm>
#include <string>

#include "core/autodiff/tape.hpp"
#include "core/models/batch.hpp"

namespace hardgrad {

/// A real field [B, ...] as a constant [B, numbers of an example].
template <class T>
Var<T> constant_of(Tape<T>& tape, const Batch& batch, const std::string& field) {
  const auto& values = batch.numbers(field);
  const auto rows = static_cast<std::size_t>(batch.examples());
  const auto x = tape.constant(rows, rows ? values.size() / rows : 0);
  std::transform(values.data.begin(), values.data.end(), tape.mutable_value(x).data,
                 [](double v) { return static_cast<T>(v); });
  return x;
}

}  // namespace hardgrad
