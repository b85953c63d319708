// Gauss rules from the polynomials orthogonal under the density (Golub & Welsch 1969, Calculation of Gauss quadrature rules).
// Their three-term recurrence is computed on a fine grid (Stieltjes' procedure; Gautschi 1982, On generating orthogonal
// polynomials). The points are their zeros (bisection on Sturm counts). The weights follow from their values at the points.
#include "core/random/gauss_rules.hpp"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>

#include "core/support/error.hpp"

namespace hardgrad {
namespace {

double density(Standard noise, double z) {
  const double bell = std::exp(-z * z / 2);
  switch (noise) {
    case Standard::normal: return bell;
    case Standard::weibull: return z > 0 ? z * bell : 0;
    case Standard::double_maxwell: return z * z * bell;
    case Standard::uniform: return 1;
  }
  return 0;
}

/// p_{k+1}(z) = (z - a_k) p_k(z) - b_k p_{k-1}(z), with leading coefficient 1; b_0 = 1.
struct Recurrence {
  std::vector<double> a, b;
};

/// Points and masses that discretise the density: the trapezoidal rule after a substitution that makes the integrand and all
/// its derivatives vanish at both ends (double-exponential formulas: Takahasi & Mori 1974).
struct Grid {
  std::vector<double> z, mass;
};

Grid grid_of(Standard noise) {
  Grid grid;
  double total = 0;
  const double reach = noise == Standard::uniform ? 3.3 : noise == Standard::weibull ? 5 : 16;
  for (double x = -reach; x <= reach; x += 1.0 / 128) {
    double z = x, slope = 1;
    if (noise == Standard::weibull) {  // z in (0, inf)
      z = std::exp(x - std::exp(-x));
      slope = z * (1 + std::exp(-x));
    } else if (noise == Standard::uniform) {  // z in (0, 1)
      const double a = std::numbers::pi / 2 * std::sinh(x);
      z = 1 / (1 + std::exp(-2 * a));
      slope = std::numbers::pi * std::cosh(x) / ((1 + std::exp(-2 * a)) * (1 + std::exp(2 * a)));
    }
    const double mass = density(noise, z) * slope;
    if (!(mass > 0)) continue;
    grid.z.push_back(z);
    grid.mass.push_back(mass);
    total += mass;
  }
  for (double& m : grid.mass) m /= total;
  return grid;
}

Recurrence recurrence(Standard noise, int n) {
  const auto grid = grid_of(noise);
  std::vector<double> before(grid.z.size(), 0.0), now(grid.z.size(), 1.0);  // orthonormal, so that nothing overflows
  Recurrence r{{}, {1}};
  double last = 0;
  for (int k = 0; k < n; ++k) {
    double a = 0, square = 0;
    for (std::size_t i = 0; i < now.size(); ++i) a += grid.mass[i] * grid.z[i] * now[i] * now[i];
    r.a.push_back(a);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const double next = (grid.z[i] - a) * now[i] - last * before[i];
      before[i] = now[i];
      now[i] = next;
      square += grid.mass[i] * next * next;
    }
    last = std::sqrt(square);
    for (double& p : now) p /= last;
    r.b.push_back(square);
  }
  return r;
}

/// The number of zeros of p_n below z.
int zeros_below(const Recurrence& r, int n, double z) {
  int count = 0;
  double ratio = 1;
  for (int k = 0; k < n; ++k) {
    ratio = r.a[k] - z - (k > 0 ? r.b[k] / ratio : 0);
    if (ratio == 0) ratio = 1e-300;
    count += ratio < 0;
  }
  return count;
}

GaussRule make(Standard noise, int n) {
  if (n < 1 || n > 64) throw Bug("a Gauss rule has 1 to 64 points");
  const auto r = recurrence(noise, n);
  GaussRule rule;
  double total = 0;
  for (int i = 0; i < n; ++i) {
    double low = -32, high = 32;
    for (int halving = 0; halving < 100; ++halving) {
      const double middle = (low + high) / 2;
      (zeros_below(r, n, middle) > i ? high : low) = middle;
    }
    const double z = (low + high) / 2;
    double before = 0, now = 1, squares = 0;
    for (int k = 0; k < n; ++k) {
      squares += now * now;
      const double next = ((z - r.a[k]) * now - (k > 0 ? std::sqrt(r.b[k]) * before : 0)) / std::sqrt(r.b[k + 1]);
      before = std::exchange(now, next);
    }
    rule.points.push_back(z);
    rule.weights.push_back(1 / squares);
    total += 1 / squares;
  }
  for (double& w : rule.weights) w /= total;
  return rule;
}

}  // namespace

double standard_density(Standard noise, double z) {
  const bool over_root = noise == Standard::normal || noise == Standard::double_maxwell;
  const double inside = noise == Standard::uniform && (z < 0 || z > 1) ? 0 : 1;
  return inside * density(noise, z) * (over_root ? 1 / std::sqrt(2 * std::numbers::pi) : 1);
}

double standard_normal_quantile(double u) { return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * u); }

const GaussRule& gauss_rule(Standard noise, int n) {
  static std::mutex making;
  static std::map<std::pair<Standard, int>, GaussRule> made;
  const std::lock_guard lock(making);
  auto it = made.find({noise, n});
  if (it == made.end()) it = made.emplace(std::pair(noise, n), make(noise, n)).first;
  return it->second;
}

}  // namespace hardgrad
