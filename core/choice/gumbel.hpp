// The Gumbel-max trick: option = argmax_i z_i with z_i = log p_i + Gumbel_i.
//
// Only differences of z matter. For two options one logistic number L suffices, the difference of the Gumbels:
// z = (0, phi + L), phi = log p_1 - log p_0.
#pragma once

#include <span>
#include <vector>

#include "core/random/randomness.hpp"

namespace hardgrad {

/// C choices. Choice c is among options 0 .. options[c] - 1 of S. With one option nothing is drawn, and the choice's
/// outputs are not written.
struct Categories {
  std::size_t width;              ///< S
  std::span<const int> options;   ///< [C]
  std::span<const double> log_p;  ///< [C, S] normalised log probabilities
};

// where [N]: the places of choices 0, D, 2 D, ... with D = C / N. The choices between are drawn at the next columns.

/// Draws z [C, S], with draw indices where.index .. where.index + S - 1. `option` [C] receives the argmax of each choice.
void perturb(const Categories& choices, std::span<const Draw> where, Randomness& random, std::span<int> option,
             std::span<double> z);

/// Draws z given the options b (top-down Gumbels: Maddison, Tarlow & Minka 2014, A* sampling):
///   z_b = -log E_b,  z_i = -log(E_i / p_i + E_b),  E exponential
/// For two options, z_1 - z_0 = phi + logit(u), with u uniform on the interval that leads to the given option: u = q + p v
/// given option 1, u = q v given option 0, v uniform. With L = logit(v) and r the probability of the other option,
///   z_1 - z_0 = softplus(L - log r) given option 1, -softplus(-L - log r) given option 0.
void perturb_given(const Categories& choices, std::span<const int> option, std::span<const Draw> where, Randomness& random,
                   std::span<double> z);

/// [C, S] the derivative of the z of `perturb_given` with its exponentials held fixed: dz_i / dlog p_i = 1 - e^(z_i - z_b). For
/// two options, both entries are d(z_1 - z_0) / dphi = p_b (1 - e^-|z_1 - z_0|). p [C, S] are the probabilities.
void followed(std::size_t width, std::span<const int> options, std::span<const double> p, std::span<const int> option,
              std::span<const double> z, std::span<double> share);

/// [S] the probability of each option after the logits change by `move` [S], with the same noise, given the option b before.
///
/// Let z_i = -log T_i with T_i exponential of rate p_i; the option is the one with the least T_i. Given b, T_b is exponential
/// of rate 1, and the other T_i - T_b are independent exponentials of rate p_i. The change scales T_i by c_i = e^(move_b -
/// move_i) relative to T_b. So the new minimum is i, at time u T_b with c_i < u < 1, with density
///   (p_i / c_i) / (1 + H(u))^2,   H(u) = sum_{k != b} p_k max(0, u / c_k - 1)
/// and it remains b with probability 1 / (1 + H(1)).
std::vector<double> chosen_after(std::span<const double> p, int option, std::span<const double> move);

/// w [C, S] = softmax(z / temperature), in the precision of w; 0 beyond a choice's options and where there is one option.
template <class T>
void relaxed(std::size_t width, std::span<const int> options, std::span<const double> z, double temperature, std::span<T> w);
extern template void relaxed(std::size_t, std::span<const int>, std::span<const double>, double, std::span<float>);
extern template void relaxed(std::size_t, std::span<const int>, std::span<const double>, double, std::span<double>);

}  // namespace hardgrad
