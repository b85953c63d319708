// Options of many columns at once, from their log probabilities: those that `Randomness::categorical` draws from the
// probabilities in double.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/random/randomness.hpp"

namespace hardgrad {

/// Columns from which on many are drawn at once.
inline constexpr std::size_t fewest_columns = 16;
/// Options up to which they are.
inline constexpr std::size_t most_options = 15;

/// p = exp(log_p) in double, which every option is drawn from.
template <class T>
void probabilities(std::span<const T> log_p, std::span<double> p);

/// option[n D + d] is drawn at where[n] with row d of exp(log_p) [D, S]. A column with one option draws nothing and gets 0.
template <class T>
void draw_categories(std::span<const T> log_p, std::size_t S, std::span<const int> options, Randomness& random,
                     std::span<const Draw> where, std::span<int> option);

/// An antithetic pair of bits: b = [u > 1 - p] and b~ = [u < p] for one uniform number u. It is drawn from its three possible
/// outcomes instead of u: both are the likelier bit, or exactly one of the two is 1. Both probabilities are passed: where a bit
/// is nearly certain, 1 - p would be all rounding error.
struct AntitheticBits {
  double of_zero, of_one;

  std::array<double, 3> law() const {
    const double differ = std::min(of_zero, of_one);
    return {std::abs(of_one - of_zero), differ, differ};
  }
  std::array<int, 2> bits(int outcome) const {
    const int same = of_one > of_zero;
    return {outcome == 0 ? same : outcome == 1, outcome == 0 ? same : outcome == 2};
  }
};
std::array<int, 2> antithetic_bits(double of_zero, double of_one, Randomness& random, Draw where);
/// u - 1/2 given the pair, at `where`: if the bits differ, u lies within min(p, 1 - p) of 0 (b = 1) or of 1 (b = 0). Otherwise it
/// lies between. p: the probabilities of 0 and 1.
double centred_number(const std::array<int, 2>& bits, std::span<const double> p, Randomness& random, Draw where);
/// The same for the pairs of D adjacent columns, from where.column on: log_p [D, 2].
template <class T>
void centred_numbers(std::span<const T> log_p, std::span<const int> first, std::span<const int> second, Randomness& random,
                     Draw where, std::span<T> number);
/// Pairs for D adjacent columns, from where.column on: log_p [D, 2] -> first and second [D].
template <class T>
void antithetic_bits(std::span<const T> log_p, Randomness& random, Draw where, std::span<int> first, std::span<int> second);

}  // namespace hardgrad
