// BLEU-4 with one reference per sentence: over a corpus without smoothing, of a sentence smoothed.
#include "core/support/bleu.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/support/ngrams.hpp"

namespace hardgrad {

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

}  // namespace hardgrad
