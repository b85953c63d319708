#include "experiments/measurement/quadrature.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "experiments/measurement/stretch.hpp"

namespace hardgrad::measurement {
namespace {

/// Scales each rule's weights to sum to 1.
Quadrature normalised(Quadrature q) {
  for (auto& weights : q.weights) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (auto& w : weights) w /= total;
  }
  return q;
}

void add_gauss(Quadrature& to, const Stretch& stretch) {
  using Rule = boost::math::quadrature::gauss<double, 6>;
  for (std::size_t i = 0; i < Rule::abscissa().size(); ++i)
    for (double side : {-1.0, 1.0}) {
      const double x = side * Rule::abscissa()[i];
      to.points.push_back(stretch.at((1 + x) / 2, (1 - x) / 2));
      for (auto& weights : to.weights) weights.push_back(stretch.mass() * Rule::weights()[i] / 2);
    }
}

/// Number of steps of 1/32 in t until the last node is e^-(37 + depth) from the ends: 37 for rounding, `depth` for integrands
/// that vary near the ends. Beyond `furthest`, e^-697 from the ends, the distances are no longer normal floating-point numbers.
constexpr int furthest = 195;
int reach_of(double depth) {
  return std::min(furthest, static_cast<int>(std::ceil(32 * std::asinh((37 + depth) / std::numbers::pi))));
}

void add_tanh_sinh(Quadrature& to, const Stretch& stretch, int level, int reach) {
  const double step = std::ldexp(1.0, -5 - level);
  const int end = reach << level;
  for (int j = -end; j <= end; ++j) {
    const double t = j * step, a = std::numbers::pi / 2 * std::sinh(t);
    const double below = 1 / (1 + std::exp(-2 * a)), above = 1 / (1 + std::exp(2 * a));
    to.points.push_back(stretch.at(below, above));
    const double weight = stretch.mass() * step * std::numbers::pi * std::cosh(t) * below * above;
    for (int rule = 0; rule < Quadrature::rules; ++rule)
      to.weights[rule].push_back(j % (1 << rule) == 0 ? weight * (1 << rule) : 0);
  }
}

}  // namespace

Quadrature uniform_quadrature(const Pieces& pieces, std::span<const double> kinks, int level) {
  std::vector<double> breaks(pieces.breaks.begin(), pieces.breaks.end());
  breaks.insert(breaks.end(), kinks.begin(), kinks.end());
  Quadrature all;
  for (const auto& stretch : uniform_stretches(breaks))
    pieces.polynomial ? add_gauss(all, stretch) : add_tanh_sinh(all, stretch, level, 3 * 32);
  return normalised(std::move(all));
}

Quadrature logistic_quadrature(double edge, std::span<const double> kinks, int level) {
  Quadrature all;
  for (const auto& stretch : logistic_stretches(edge, kinks)) add_tanh_sinh(all, stretch, level, reach_of(stretch.depth()));
  return normalised(std::move(all));
}

double quadrature_error(double coarse, double fine, double scale) {
  if (fine < 0.03 * coarse) return fine;
  return fine < coarse || coarse + fine <= 1e-12 * scale ? coarse + fine : std::numeric_limits<double>::infinity();
}

double gauss_error(double coarse, double fine) { return fine < 0.1 * coarse ? fine : 16 * std::max(fine, coarse); }

}  // namespace hardgrad::measurement
