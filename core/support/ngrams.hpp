// n-grams that two sequences share, and F scores of them.
#pragma once

#include <cstddef>
#include <span>

namespace hardgrad {

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

}  // namespace hardgrad
