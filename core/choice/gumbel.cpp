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

int perturb(std::span<const double> log_p, std::span<double> z, Randomness& random, Draw where) {
  if (log_p.size() == 2) {
    const double flips[] = {std::exp(log_p[0])};  // where the option changes
    const double u = random.uniform(where, {.breaks = flips});
    z[0] = 0;
    z[1] = log_p[1] - log_p[0] + std::log(u) - std::log1p(-u);
    return z[1] > 0;
  }
  for (std::size_t i = 0; i < log_p.size(); ++i) z[i] = log_p[i] - std::log(exponential(random, where, i));
  return static_cast<int>(std::max_element(z.begin(), z.end()) - z.begin());
}

void perturb_given(std::span<const double> log_p, int option, std::span<double> z, Randomness& random, Draw where) {
  if (log_p.size() == 2) {
    // u = q + p v or q v: z = log(1 + e^phi v) - log(1 - v) or log v - log(1 + e^-phi (1 - v)), no exponential above 1.
    const double phi = log_p[1] - log_p[0], v = random.uniform(where), small = std::exp(-std::abs(phi));
    const double inside = option == 1 ? v : 1 - v, toward = option == 1 ? phi : -phi;
    const double grown =
        toward > 0 ? toward + std::log(small + inside) : std::log1p(small * inside);  // log(1 + e^toward inside)
    z[0] = 0;
    z[1] = option == 1 ? grown - std::log1p(-v) : std::log(v) - grown;
    return;
  }
  const double top = exponential(random, where, option);
  for (std::size_t i = 0; i < log_p.size(); ++i)
    z[i] =
        static_cast<int>(i) == option ? -std::log(top) : -std::log(exponential(random, where, i) * std::exp(-log_p[i]) + top);
}

void followed(std::span<const double> log_p, int option, std::span<const double> z, std::span<double> share) {
  if (log_p.size() == 2) {
    const double logistic = z[1] - z[0] - (log_p[1] - log_p[0]);
    const double other = log_p[1 - option], toward = option == 1 ? logistic : -logistic;
    share[0] = share[1] = 1 - (std::exp(other) + std::exp(other - toward));
    return;
  }
  for (std::size_t i = 0; i < log_p.size(); ++i) share[i] = -std::expm1(z[i] - z[option]);
}

void relaxed(std::span<const double> z, double temperature, std::span<double> w) {
  const double most = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (std::size_t i = 0; i < z.size(); ++i) sum += w[i] = std::exp((z[i] - most) / temperature);
  for (std::size_t i = 0; i < z.size(); ++i) w[i] /= sum;
}

}  // namespace hardgrad
