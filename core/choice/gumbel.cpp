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
    // u = q + p v or q v: z = log(1 + e^phi v) - log(1 - v) or log v - log(1 + e^-phi (1 - v)), no exponential above 1.
    const double phi = log_p[1] - log_p[0], v = random.uniform(where), small = std::exp(-std::abs(phi));
    const double inside = option == 1 ? v : 1 - v, toward = option == 1 ? phi : -phi;
    const double grown =
        toward > 0 ? toward + std::log(small + inside) : std::log1p(small * inside);  // log(1 + e^toward inside)
    return {option, {0, option == 1 ? grown - std::log1p(-v) : std::log(v) - grown}};
  }
  Perturbed noise{option, std::vector<double>(log_p.size())};
  const double top = exponential(random, where, option);
  for (std::size_t i = 0; i < log_p.size(); ++i)
    noise.z[i] =
        static_cast<int>(i) == option ? -std::log(top) : -std::log(exponential(random, where, i) * std::exp(-log_p[i]) + top);
  return noise;
}

std::vector<double> followed(std::span<const double> log_p, const Perturbed& noise) {
  std::vector<double> share(log_p.size());
  if (log_p.size() == 2) {
    const double logistic = noise.z[1] - noise.z[0] - (log_p[1] - log_p[0]);
    const double other = log_p[1 - noise.option], toward = noise.option == 1 ? logistic : -logistic;
    share[0] = share[1] = 1 - (std::exp(other) + std::exp(other - toward));
    return share;
  }
  for (std::size_t i = 0; i < share.size(); ++i) share[i] = -std::expm1(noise.z[i] - noise.z[noise.option]);
  return share;
}

std::vector<double> relaxed(const Perturbed& noise, double temperature) {
  std::vector<double> w(noise.z.size());
  const double most = *std::max_element(noise.z.begin(), noise.z.end());
  double sum = 0;
  for (std::size_t i = 0; i < w.size(); ++i) sum += w[i] = std::exp((noise.z[i] - most) / temperature);
  for (auto& weight : w) weight /= sum;
  return w;
}

}  // namespace hardgrad
