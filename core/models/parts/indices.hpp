// Lists of row numbers.
#pragma once

#include <numeric>
#include <vector>

namespace hardgrad {

/// 0 .. count - 1
inline std::vector<int> range(std::size_t count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}
/// list[at[m]] of each m
inline std::vector<int> taken(const std::vector<int>& list, const std::vector<int>& at) {
  std::vector<int> some;
  some.reserve(at.size());
  for (int m : at) some.push_back(list[m]);
  return some;
}
/// Numbers of D lines each: n -> n D .. n D + D - 1, and -1 -> -1.
inline std::vector<int> each_line(const std::vector<int>& index, std::size_t lines) {
  if (lines == 1) return index;
  std::vector<int> all;
  all.reserve(index.size() * lines);
  for (int n : index)
    for (std::size_t d = 0; d < lines; ++d) all.push_back(n < 0 ? -1 : n * static_cast<int>(lines) + static_cast<int>(d));
  return all;
}

}  // namespace hardgrad
