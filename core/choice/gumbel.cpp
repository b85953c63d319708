#include "core/choice/gumbel.hpp"

#include <algorithm>
#include <cmath>

namespace hardgrad {
namespace {

// Exponential number at index `i` of a choice's draws.
double exponential(Randomness& random, Draw where, std::size_t i) {
  where.index += static_cast<std::uint32_t>(i);
  return -std::log(random.uniform(where));
}

}  // namespace

Perturbed perturb(std::span<const double> log_p, Randomness& random, Draw where) {
  if (log_p.size() == 2) {
    const double flips[] = {std::exp(log_p[0])};  // where the option changes
    const double u = random.uniform(where, {.breaks = flips});
    const double z = log_p[1] - log_p[0] + std::log(u) - std::log1p(-u);
    return {z > 0, {0, z}};
  }
  Perturbed noise{0, std::vector<double>(log_p.size())};
  for (std::size_t i = 0; i < log_p.size(); ++i) noise.z[i] = log_p[i] - std::log(exponential(random, where, i));
  noise.option = static_cast<int>(std::max_element(noise.z.begin(), noise.z.end()) - noise.z.begin());
  return noise;
}

Perturbed perturb_given(std::span<const double> log_p, int option, Randomness& random, Draw where) {
  if (log_p.size() == 2) {
    // u = q + p v or q v; log u - log(1 - u) without forming 1 - u.
    const double q = std::exp(log_p[0]), p = std::exp(log_p[1]), v = random.uniform(where);
    const double z = option == 1 ? std::log((q + p * v) / q) - std::log1p(-v) : std::log(v) - std::log((p + q * (1 - v)) / p);
    return {option, {0, z}};
  }
  Perturbed noise{option, std::vector<double>(log_p.size())};
  const double top = exponential(random, where, option);
  for (std::size_t i = 0; i < log_p.size(); ++i)
    noise.z[i] = static_cast<int>(i) == option ? -std::log(top)
                                               : -std::log(exponential(random, where, i) * std::exp(-log_p[i]) + top);
  return noise;
}

std::vector<double> followed(std::span<const double> log_p, const Perturbed& noise) {
  std::vector<double> share(log_p.size());
  if (log_p.size() == 2) {
    const double logistic = noise.z[1] - noise.z[0] - (log_p[1] - log_p[0]);
    const double rest = noise.option == 1 ? std::exp(log_p[0]) * (1 + std::exp(-logistic))
                                          : std::exp(log_p[1]) * (1 + std::exp(logistic));
    share[0] = share[1] = 1 - rest;
    return share;
  }
  for (std::size_t i = 0; i < share.size(); ++i) share[i] = -std::expm1(noise.z[i] - noise.z[noise.option]);
  return share;
}

std::vector<double> relaxed(const Perturbed& noise, double temperature) {
  std::vector<double> w(noise.z.size());
  double sum = 0;
  for (std::size_t i = 0; i < w.size(); ++i) sum += w[i] = std::exp((noise.z[i] - noise.z[noise.option]) / temperature);
  for (auto& weight : w) weight /= sum;
  return w;
}

}  // namespace hardgrad
