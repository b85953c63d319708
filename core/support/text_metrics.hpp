// Metrics of answers that are sequences of words.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace hardgrad {

// n-grams that two sequences share, and F scores of them.

/// The number of n-grams of `said` that are also in `right`, each at most as often as there. One with the word `never` counts
/// as not there.
std::size_t shared_ngrams(std::span<const int> said, std::span<const int> right, std::size_t n, int never = -1);

/// F_beta = (1 + beta^2) P R / (beta^2 P + R) of the precision P and the recall R of n-grams, each averaged over the lengths
/// n = 1 .. most that neither sequence is shorter than. 1 if both are empty; 0 if one is, or nothing is shared.
/// Popović 2015, chrF: character n-gram F-score.
double ngram_f(std::span<const int> said, std::span<const int> right, std::size_t most, double beta);

/// F1 of single words (Rajpurkar et al. 2016, SQuAD).
inline double word_f1(std::span<const int> said, std::span<const int> right) { return ngram_f(said, right, 1, 1); }
/// chrF2 of up to 6-grams, where every word counts as a character.
inline double chrf(std::span<const int> said, std::span<const int> right) { return ngram_f(said, right, 6, 2); }

// BLEU-4: Papineni, Roukos, Ward, Zhu (2002), "BLEU: a method for automatic evaluation of machine translation".

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

// The edit distance: the least number of insertions, deletions and substitutions between two sequences (Levenshtein 1966).

std::size_t edit_distance(std::span<const int> from, std::span<const int> to);

// Arithmetic expressions as words: 0 is +, 1 is -, 2 is *, and the word w of at least 3 is the number w - 2.

inline constexpr int expression_operators = 3;

/// The value, with * before + and -. Empty if the words are no expression: number, operator, number, ..
std::optional<long> expression_value(std::span<const int> words);
/// 1 if the words are an expression with the value wanted[0] that has each of the numbers wanted[1], .. (as words) exactly once;
/// else 0. Countdown, as in Gandhi et al. 2024, Stream of search.
double solves(std::span<const int> words, std::span<const int> wanted);

}  // namespace hardgrad
