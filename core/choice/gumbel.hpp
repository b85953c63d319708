// Gumbel noise that makes a choice: option = argmax_i z_i with z_i = log p_i + Gumbel_i.
//
// Only differences of z matter. Two options need one number, the logistic difference of their Gumbels: z = (0, phi + L).
#pragma once

#include <span>
#include <vector>

#include "core/random/randomness.hpp"

namespace hardgrad {

/// A choice and the perturbed log probabilities that made it.
struct Perturbed {
  int option = 0;
  std::vector<double> z;  ///< [n]
};

/// Draws the noise of a choice with log probabilities log_p [n] (normalised), at where.index and the n - 1 after it.
Perturbed perturb(std::span<const double> log_p, Randomness& random, Draw where);

/// Draws the noise given the option it led to (top-down Gumbels: Maddison, Tarlow & Minka 2014, A* sampling):
///   z_b = -log E_b,  z_i = -log(E_i / p_i + E_b),  E exponential;    of two options z = phi + logit of u given u's side.
Perturbed perturb_given(std::span<const double> log_p, int option, Randomness& random, Draw where);

/// [n] how far z follows log p if it is had as `perturb_given` has it, its exponentials held: dz_i / dlog p_i = 1 - e^(z_i -
/// z_b), of two options d(z_1 - z_0) / dphi (both entries alike). It depends on z alone.
std::vector<double> followed(std::span<const double> log_p, const Perturbed& noise);

/// [n] softmax(z / temperature).
std::vector<double> relaxed(const Perturbed& noise, double temperature);

}  // namespace hardgrad
