// BLEU-4 over a corpus: Papineni, Roukos, Ward, Zhu (2002), "BLEU: a method for automatic evaluation of
// machine translation".
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hardgrad::tasks {

/// What is summed over sentences: clipped matches of 1- to 4-grams, their number in the answers, words of the
/// answers, words of the references.
inline constexpr std::size_t bleu_statistics = 10;

/// A sentence without its end mark, and what comes after it; -1 pads.
std::span<const int> before_end(std::span<const int> sentence, int end);
/// Adds one sentence and its one reference (neither with its end mark). The word `never` matches nothing.
void add_bleu(std::span<const int> answer, std::span<const int> reference, int never, std::vector<double>& statistics);

/// BP exp(sum_n log p_n / 4) with BP = min(1, exp(1 - r / c)), in [0, 1]; 0 if any precision is 0 (no
/// smoothing), NaN before any sentence was added.
double bleu(const std::vector<double>& statistics);

}  // namespace hardgrad::tasks
