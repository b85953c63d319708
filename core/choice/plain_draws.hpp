// Draws of a question without a network, from its logits alone: with the same noise, the draws of the handlers at the first
// question of a network. For code that computes estimates where the logits are (core/estimator/closed_form.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// A question of E examples with D columns of S options or fewer.
template <class T>
struct PlainQuestion {
  std::size_t columns;                ///< D
  Var<T> log_p;                       ///< [E D, S] as log_softmax has it
  std::span<const int> options;       ///< [E D]
  std::span<const std::uint32_t> id;  ///< [E]
};

/// Where drawn rows are written.
template <class T>
struct DrawnRows {
  enum class Form {
    none,     ///< nowhere
    options,  ///< `option` [R, D]
    one_hot,  ///< `weights` [R, D, S]
    bits      ///< `weights` [R, D]
  };
  Form form;
  std::size_t columns, width;  ///< D, S
  std::int64_t* option = nullptr;
  T* weights = nullptr;
  std::span<const int> order = {};  ///< [E D, S] the caller's option for each of the question's; empty: the same

  /// Row r, of this example: option [D].
  void put(std::size_t r, std::size_t example, std::span<const int> chosen) const;
};

/// True if all n numbers are finite.
template <class T>
bool all_finite(const T* x, std::size_t n);
/// The same; pairs [n, 2] receives (0, x).
template <class T>
bool put_beside_zero(const T* x, std::size_t n, T* pairs);

/// Rows (e, k), k < samples, as SampleHandler; at another temperature than 1, as RelaxationContext::draw.
template <class T>
void draw_samples(const PlainQuestion<T>& question, int samples, double temperature, Randomness& random,
                  const DrawnRows<T>& to);

/// The same rows with the noise of RelaxationContext::gumbels: noise [E K, D, S], 0 of options that are missing; or, with S = 2, the
/// difference of the two [E K, D]. The options are those of the largest perturbed logits.
template <class T>
void draw_gumbels(const PlainQuestion<T>& question, int samples, Randomness& random, const DrawnRows<T>& to, T* noise);

/// Rows (e, g, 0), (e, g, 1), g < pairs: antithetic bits, as disarm. `numbers` [E pairs, D], if not null: u - 1/2 of the uniform number
/// that made each pair, as arm; 0 where there is no choice.
template <class T>
void draw_pairs(const PlainQuestion<T>& question, int pairs, Randomness& random, const DrawnRows<T>& to, T* numbers);

#define HARDGRAD_DECLARE(T)                                                                                  \
  extern template struct DrawnRows<T>;                                                                       \
  extern template bool all_finite(const T*, std::size_t);                                                    \
  extern template bool put_beside_zero(const T*, std::size_t, T*);                                           \
  extern template void draw_samples(const PlainQuestion<T>&, int, double, Randomness&, const DrawnRows<T>&); \
  extern template void draw_gumbels(const PlainQuestion<T>&, int, Randomness&, const DrawnRows<T>&, T*);     \
  extern template void draw_pairs(const PlainQuestion<T>&, int, Randomness&, const DrawnRows<T>&, T*);
HARDGRAD_DECLARE(float)
HARDGRAD_DECLARE(double)
#undef HARDGRAD_DECLARE

}  // namespace hardgrad
