// A batch: named integer and real fields. The first axis of each is the examples.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/support/array.hpp"

namespace hardgrad {

struct Batch {
  std::vector<std::uint32_t> id;  ///< [B] identity of each example in its data set; keys its random draws
  std::map<std::string, Array<int>> integers;
  std::map<std::string, Array<double>> reals;

  int examples() const { return static_cast<int>(id.size()); }
  /// A field by name; Bug if it is missing.
  const Array<int>& ints(const std::string& field) const;
  const Array<double>& numbers(const std::string& field) const;
  /// A batch of the examples at these positions, in this order. Padding stays.
  Batch select(const std::vector<int>& positions) const;
};

/// Numbers of a task that determine a model's shapes, e.g. {"source_vocabulary", 2000}.
using Dimensions = std::map<std::string, int>;

}  // namespace hardgrad
