// Fields of a batch on a tape.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/models/batch.hpp"

namespace hardgrad {

/// A real field [B, ...] as a constant [B, numbers of an example].
template <class T>
Var<T> constant_of(Tape<T>& tape, const Batch& batch, const std::string& field) {
  const auto& values = batch.numbers(field);
  const auto rows = static_cast<std::size_t>(batch.examples());
  const auto x = tape.constant(rows, rows ? values.size() / rows : 0);
  std::transform(values.begin(), values.end(), tape.mutable_value(x).data, [](double v) { return static_cast<T>(v); });
  return x;
}

/// A value of `owner` that depends only on these integer fields of a batch. It is made once for all runs on the tape over equal
/// fields.
template <class X, class T, class Make>
const X& shared_for(Tape<T>& tape, const void* owner, const Batch& batch, const std::vector<const char*>& fields, Make make) {
  struct CachedField {
    std::vector<std::vector<int>> of;
    X what;
  };
  const auto same = [&](const CachedField& made) {
    return std::equal(fields.begin(), fields.end(), made.of.begin(), made.of.end(),
                      [&](const char* field, const auto& values) { return batch.ints(field).storage() == values; });
  };
  return tape
      .template shared<CachedField>(owner, same,
                                    [&] {
                                      CachedField made{{}, make()};
                                      for (const char* field : fields) made.of.push_back(batch.ints(field).storage());
                                      return made;
                                    })
      .what;
}

}  // namespace hardgrad
