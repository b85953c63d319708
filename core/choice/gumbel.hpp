// Gumbel noise that makes choices: option = argmax_i z_i with z_i = log p_i + Gumbel_i.
//
// Only differences of z matter. Two options need one number, the logistic difference of their Gumbels: z = (0, phi + L).
#pragma once

#include <span>
#include <vector>

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

/// [S] the probabilities of what a choice's noise leads to when its logits are moved by `move` [S] and the noise is kept, given
/// the option it led to before. In terms of races: z_i = -log T_i, T_i exponential of rate p_i, and the option is the first.
/// Given that this is b, T_b is exponential of rate 1 and all others start anew; then T_i is stretched by c_i = e^(move_b -
/// move_i), so that i overtakes b at u T_b, c_i < u < 1, with the density
///   (p_i / c_i) / (1 + H(u))^2,   H(u) = sum_{k != b} p_k max(0, u / c_k - 1)          (b stays first with 1 / (1 + H(1)))
std::vector<double> chosen_after(std::span<const double> p, int option, std::span<const double> move);

/// w [C, S] = softmax(z / temperature); 0 beyond a choice's options, and where there is no choice.
void relaxed(std::size_t width, std::span<const int> options, std::span<const double> z, double temperature,
             std::span<double> w);

}  // namespace hardgrad
