// BLEU-4: Papineni, Roukos, Ward, Zhu (2002), "BLEU: a method for automatic evaluation of machine translation".
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hardgrad {

/// Number of statistics summed over sentences: clipped matches of 1- to 4-grams, their number in the answers, words of the
/// answers, words of the references.
inline constexpr std::size_t bleu_statistics = 10;

/// The words of a sentence before its end mark; -1 pads.
std::span<const int> before_end(std::span<const int> sentence, int end);
/// Adds one sentence and its reference, both without end marks. The word `never` matches nothing.
void add_bleu(std::span<const int> answer, std::span<const int> reference, int never, std::vector<double>& statistics);

/// BP exp(sum_n log p_n / 4) with BP = min(1, exp(1 - r / c)), in [0, 1]; 0 if any precision is 0 (no smoothing); NaN without
/// sentences.
double bleu(const std::vector<double>& statistics);

/// BLEU-4 of one sentence, as a reward: the numbers of matching and of all 2- to 4-grams are one more than they are, so that it
/// is positive if a word matches, and 1 for the reference itself. An empty answer has 0, or 1 if the reference is empty, too.
/// Lin & Och 2004, ORANGE: a method for evaluating automatic evaluation metrics for machine translation (smoothed BLEU).
double sentence_bleu(std::span<const int> answer, std::span<const int> reference);

}  // namespace hardgrad
