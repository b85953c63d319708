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
    const double phi = log_p[1] - log_p[0], flips[] = {-phi};  // where the option changes
    z[0] = 0;
    z[1] = phi + random.logistic(where, {.breaks = flips});
    return z[1] > 0;
  }
  for (std::size_t i = 0; i < log_p.size(); ++i) z[i] = log_p[i] - std::log(exponential(random, where, i));
  return static_cast<int>(std::max_element(z.begin(), z.end()) - z.begin());
}

void perturb_given(std::span<const double> log_p, int option, std::span<double> z, Randomness& random, Draw where) {
  if (log_p.size() == 2) {
    // u = q + p v or q v: z = log(1 + e^phi v) - log(1 - v) or log v - log(1 + e^-phi (1 - v)), no exponential above 1.
    const double phi = log_p[1] - log_p[0], logistic = random.logistic(where), small = std::exp(-std::abs(phi));
    const double sign = option == 1 ? 1 : -1, toward = sign * phi;
    const double inside = 1 / (1 + std::exp(-sign * logistic)), outside = 1 / (1 + std::exp(sign * logistic));
    const double grown =
        toward > 0 ? toward + std::log(small + inside) : std::log1p(small * inside);  // log(1 + e^toward inside)
    z[0] = 0;
    z[1] = sign * (grown - std::log(outside));
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
