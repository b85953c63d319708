#include "core/support/edit_distance.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hardgrad {

std::size_t edit_distance(std::span<const int> from, std::span<const int> to) {
  std::vector<std::size_t> row(to.size() + 1);  // distance of the current prefix of `from` to each prefix of `to`
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const auto replaced = diagonal + (from[i] != to[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace hardgrad
