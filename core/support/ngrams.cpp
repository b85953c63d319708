#include "core/support/ngrams.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace hardgrad {

std::size_t shared_ngrams(std::span<const int> said, std::span<const int> right, std::size_t n, int never) {
  std::map<std::vector<int>, int> left;  // not yet matched
  for (std::size_t i = 0; i + n <= right.size(); ++i) ++left[{right.begin() + i, right.begin() + i + n}];
  std::size_t shared = 0;
  for (std::size_t i = 0; i + n <= said.size(); ++i) {
    const std::vector<int> gram(said.begin() + i, said.begin() + i + n);
    if (std::find(gram.begin(), gram.end(), never) != gram.end()) continue;
    const auto it = left.find(gram);
    if (it == left.end() || it->second == 0) continue;
    --it->second;
    ++shared;
  }
  return shared;
}

double ngram_f(std::span<const int> said, std::span<const int> right, std::size_t most, double beta) {
  if (said.empty() && right.empty()) return 1;
  double precision = 0, recall = 0;  // sums over n; the common divisor cancels up to the last line
  const std::size_t orders = std::min({most, said.size(), right.size()});
  for (std::size_t n = 1; n <= orders; ++n) {
    const auto shared = static_cast<double>(shared_ngrams(said, right, n));
    precision += shared / static_cast<double>(said.size() - n + 1);
    recall += shared / static_cast<double>(right.size() - n + 1);
  }
  if (precision == 0) return 0;
  const double square = beta * beta;
  return (1 + square) * precision * recall / (square * precision + recall) / static_cast<double>(orders);
}

}  // namespace hardgrad
