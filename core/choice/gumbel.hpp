// Gumbel noise that makes choices: option = argmax_i z_i with z_i = log p_i + Gumbel_i.
//
// Only differences of z matter. Two options need one number, the logistic difference of their Gumbels: z = (0, phi + L).
#pragma once

#include <span>

#include "core/random/randomness.hpp"

namespace hardgrad {

/// C choices side by side, each among the first `options` of S. One option is no choice: its numbers are left alone.
struct Cells {
  std::size_t width;              ///< S
  std::span<const int> options;   ///< [C]
  std::span<const double> log_p;  ///< [C, S] normalised
};

/// Draws the noise z [C, S] of choices, at where.index and the S - 1 after it. `option` [C]: those it makes.
void perturb(const Cells& cells, std::span<const Draw> where, Randomness& random, std::span<int> option, std::span<double> z);

/// Draws the noise given the options it led to (top-down Gumbels: Maddison, Tarlow & Minka 2014, A* sampling):
///   z_b = -log E_b,  z_i = -log(E_i / p_i + E_b),  E exponential;    of two options z = phi + logit of u given u's side.
void perturb_given(const Cells& cells, std::span<const int> option, std::span<const Draw> where, Randomness& random,
                   std::span<double> z);

/// [C, S] how far z follows log p if it is had as `perturb_given` has it, its exponentials held: dz_i / dlog p_i = 1 - e^(z_i -
/// z_b), of two options d(z_1 - z_0) / dphi (both entries alike). It depends on z alone.
void followed(const Cells& cells, std::span<const int> option, std::span<const double> z, std::span<double> share);

/// w [C, S] = softmax(z / temperature); 0 beyond a choice's options, and where there is no choice.
void relaxed(std::size_t width, std::span<const int> options, std::span<const double> z, double temperature,
             std::span<double> w);

}  // namespace hardgrad
