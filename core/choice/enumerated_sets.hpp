// The rows of an enumeration: all sets of the answers of a row's columns, or the answers of each column side by side.
#pragma once

#include <functional>
#include <vector>

#include "core/choice/distribution.hpp"

namespace hardgrad {

struct EnumeratedSets {
  std::vector<int> parent;  ///< [R'] the asking row
  std::vector<int> answer;  ///< [R' D] index of the column's answer
  std::vector<char> spare;  ///< as Choice::spare
};

/// For `asks` rows of D columns; answers(c) is the number of answers of choice c, at least 1. NotExact beyond the cap of rows.
EnumeratedSets enumerated_sets(std::size_t asks, std::size_t D, const std::function<double(std::size_t)>& answers, int step,
                               const Visits& visits);

}  // namespace hardgrad
