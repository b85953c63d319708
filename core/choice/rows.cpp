#include "core/choice/rows.hpp"

namespace hardgrad {

RowsPtr Rows::after(RowsPtr origin, std::vector<int> parent, int step) {
  auto rows = std::make_shared<Rows>();
  const std::size_t n = parent.size();
  rows->example.resize(n);
  rows->replica.resize(n);
  int longest = 0;
  for (std::size_t r = 0; r < n; ++r) {
    rows->example[r] = origin->example[parent[r]];
    rows->replica[r] = r > 0 && rows->example[r] == rows->example[r - 1] ? rows->replica[r - 1] + 1 : 0;
    longest = std::max(longest, rows->replica[r] + 1);
  }
  const std::size_t examples = n ? static_cast<std::size_t>(rows->example.back()) + 1 : 0;
  rows->copies = examples * longest == n ? longest : 0;
  rows->parent = std::move(parent);
  rows->origin = std::move(origin);
  rows->step = step;
  return rows;
}

}  // namespace hardgrad
