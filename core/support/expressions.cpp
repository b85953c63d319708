#include "core/support/expressions.hpp"

#include <algorithm>
#include <vector>

namespace hardgrad {

std::optional<long> expression_value(std::span<const int> words) {
  if (words.size() % 2 == 0) return {};
  long sum = 0, product = 1;  // of the finished terms; of the current one, with its sign
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_number = words[i] >= expression_operators;
    if (is_number != (i % 2 == 0)) return {};
    if (is_number) {
      product *= words[i] - expression_operators + 1;
    } else if (words[i] != 2) {
      sum += product;
      product = words[i] == 1 ? -1 : 1;
    }
  }
  return sum + product;
}

double solves(std::span<const int> words, std::span<const int> wanted) {
  std::vector<int> used, given(wanted.begin() + 1, wanted.end());
  std::copy_if(words.begin(), words.end(), std::back_inserter(used), [](int w) { return w >= expression_operators; });
  return std::is_permutation(used.begin(), used.end(), given.begin(), given.end()) && expression_value(words) == wanted[0];
}

}  // namespace hardgrad
