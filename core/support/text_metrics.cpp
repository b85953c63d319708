#include "core/support/text_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
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

// BLEU-4 with one reference per sentence: over a corpus without smoothing, of a sentence smoothed.

std::span<const int> before_end(std::span<const int> sentence, int end) {
  const auto last = std::find_if(sentence.begin(), sentence.end(), [end](int word) { return word == end || word < 0; });
  return sentence.first(static_cast<std::size_t>(last - sentence.begin()));
}

void add_bleu(std::span<const int> answer, std::span<const int> reference, int never, std::vector<double>& statistics) {
  statistics.resize(bleu_statistics);
  for (std::size_t n = 1; n <= 4; ++n) {
    statistics[n - 1] += static_cast<double>(shared_ngrams(answer, reference, n, never));
    if (answer.size() >= n) statistics[4 + n - 1] += static_cast<double>(answer.size() - n + 1);
  }
  statistics[8] += static_cast<double>(answer.size());
  statistics[9] += static_cast<double>(reference.size());
}

double bleu(const std::vector<double>& statistics) {
  if (statistics.size() < bleu_statistics || statistics[9] == 0) return std::numeric_limits<double>::quiet_NaN();
  double log_precision = 0;
  for (std::size_t n = 0; n < 4; ++n) {
    if (statistics[n] == 0) return 0;
    log_precision += std::log(statistics[n] / statistics[4 + n]) / 4;
  }
  return std::exp(log_precision + std::min(0.0, 1 - statistics[9] / statistics[8]));
}

double sentence_bleu(std::span<const int> answer, std::span<const int> reference) {
  if (answer.empty()) return reference.empty();
  std::vector<double> statistics;
  add_bleu(answer, reference, -1, statistics);
  for (std::size_t n = 1; n < 4; ++n) {
    ++statistics[n];
    ++statistics[4 + n];
  }
  return reference.empty() ? 0 : bleu(statistics);
}

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
