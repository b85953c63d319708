#include "experiments/tasks/linear_tree.hpp"

#include <utility>

namespace hardgrad::tasks {

std::optional<std::multiset<Bracket>> brackets_of(const std::vector<std::string>& row, std::size_t words) {
  std::multiset<Bracket> brackets;
  std::vector<std::pair<std::string, int>> open;  // label, first word
  int word = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto& symbol = row[i];
    if (i > 0 && open.empty()) return {};  // a second root
    if (opens(symbol)) {
      open.emplace_back(symbol.substr(1), word);
    } else if (symbol == tree_leaf) {
      ++word;
    } else {
      if (open.empty() || symbol != ")" + open.back().first || open.back().second == word) return {};
      brackets.emplace(open.back().first, open.back().second, word);
      open.pop_back();
    }
  }
  if (row.empty() || !open.empty() || static_cast<std::size_t>(word) != words) return {};
  return brackets;
}

}  // namespace hardgrad::tasks
