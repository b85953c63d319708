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

/// Draws the noise z [n] of a choice with log probabilities log_p [n] (normalised), at where.index and the n - 1 after it.
/// Returns the option it makes.
int perturb(std::span<const double> log_p, std::span<double> z, Randomness& random, Draw where);

/// Draws the noise given the option it led to (top-down Gumbels: Maddison, Tarlow & Minka 2014, A* sampling):
///   z_b = -log E_b,  z_i = -log(E_i / p_i + E_b),  E exponential;    of two options z = phi + logit of u given u's side.
void perturb_given(std::span<const double> log_p, int option, std::span<double> z, Randomness& random, Draw where);

/// [n] how far z follows log p if it is had as `perturb_given` has it, its exponentials held: dz_i / dlog p_i = 1 - e^(z_i -
/// z_b), of two options d(z_1 - z_0) / dphi (both entries alike). It depends on z alone.
void followed(std::span<const double> log_p, int option, std::span<const double> z, std::span<double> share);

/// w [n] = softmax(z / temperature).
void relaxed(std::span<const double> z, double temperature, std::span<double> w);

/// The same with vectors of their own.
inline Perturbed perturb(std::span<const double> log_p, Randomness& random, Draw where) {
  Perturbed noise{0, std::vector<double>(log_p.size())};
  noise.option = perturb(log_p, noise.z, random, where);
  return noise;
}
inline Perturbed perturb_given(std::span<const double> log_p, int option, Randomness& random, Draw where) {
  Perturbed noise{option, std::vector<double>(log_p.size())};
  perturb_given(log_p, option, noise.z, random, where);
  return noise;
}
inline std::vector<double> relaxed(const Perturbed& noise, double temperature) {
  std::vector<double> w(noise.z.size());
  relaxed(noise.z, temperature, w);
  return w;
}

}  // namespace hardgrad
