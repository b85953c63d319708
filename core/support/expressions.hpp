// Arithmetic expressions as words: 0 is +, 1 is -, 2 is *, and the word w of at least 3 is the number w - 2.
#pragma once

#include <optional>
#include <span>

namespace hardgrad {

inline constexpr int expression_operators = 3;

/// The value, with * before + and -. Empty if the words are no expression: number, operator, number, ..
std::optional<long> expression_value(std::span<const int> words);
/// 1 if the words are an expression with the value wanted[0] that has each of the numbers wanted[1], .. (as words) exactly once;
/// else 0. Countdown, as in Gandhi et al. 2024, Stream of search.
double solves(std::span<const int> words, std::span<const int> wanted);

}  // namespace hardgrad
