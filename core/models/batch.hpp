// A batch: named integer and real fields, first axis the examples.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/support/array.hpp"

namespace hardgrad {

struct Batch {
  std::vector<std::uint32_t> id;  ///< [B] identity of each example in its data set: names its random draws
  std::map<std::string, Array<int>> integers;
  std::map<std::string, Array<double>> reals;

  int examples() const { return static_cast<int>(id.size()); }
  /// Throw Bug if there is no such field.
  const Array<int>& ints(const std::string& field) const;
  const Array<double>& numbers(const std::string& field) const;
  /// The batch of the given examples alone (positions, any order). Padding stays.
  Batch select(const std::vector<int>& positions) const;
};

/// What a model must know of a task before it has parameters, e.g. {"source_vocabulary", 2000}.
using Dimensions = std::map<std::string, int>;

}  // namespace hardgrad
