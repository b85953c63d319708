#include "experiments/measurement/quadrature.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/support/error.hpp"

namespace hardgrad {
namespace {

/// Each rule's weights are made to sum to 1.
Quadrature normalised(Quadrature q) {
  for (auto& weights : q.weights) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (auto& w : weights) w /= total;
  }
  return q;
}

void add_gauss(Quadrature& to, double from, double width) {
  using Rule = boost::math::quadrature::gauss<double, 6>;
  for (std::size_t i = 0; i < Rule::abscissa().size(); ++i)
    for (double side : {-1.0, 1.0}) {
      to.points.push_back(from + width * (1 + side * Rule::abscissa()[i]) / 2);
      for (auto& weights : to.weights) weights.push_back(width * Rule::weights()[i] / 2);
    }
}

/// How far nodes go in t for the last to be e^-(37 + depth) from the ends: 37 is rounding, `depth` what an integrand may hide
/// there.
double reach_of(double depth) { return std::ceil(8 * std::asinh((37 + std::min(depth, 560.0)) / std::numbers::pi)) / 8; }

/// point(below, above) is the number at a place in (0, 1), given as its distances from both ends; `mass`: of all.
template <class F>
void add_tanh_sinh(Quadrature& to, int level, double mass, double reach, F point) {
  const double step = std::ldexp(1.0, -5 - level);
  const int end = static_cast<int>(reach * 8) << (2 + level);  // t = +-reach, in eighths
  for (int j = -end; j <= end; ++j) {
    const double t = j * step, a = std::numbers::pi / 2 * std::sinh(t);
    const double below = 1 / (1 + std::exp(-2 * a)), above = 1 / (1 + std::exp(2 * a));
    to.points.push_back(point(below, above));
    const double weight = mass * step * std::numbers::pi * std::cosh(t) * below * above;
    for (int rule = 0; rule < Quadrature::rules; ++rule)
      to.weights[rule].push_back(j % (1 << rule) == 0 ? weight * (1 << rule) : 0);
  }
}

}  // namespace

Quadrature uniform_quadrature(const Pieces& pieces, int level) {
  std::vector<double> ends{0, 1};
  for (double b : pieces.breaks)
    if (b > 0 && b < 1) ends.push_back(b);
  std::sort(ends.begin(), ends.end());
  Quadrature all;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const double from = ends[i - 1], width = ends[i] - from;
    if (!(width > 0)) continue;
    if (pieces.polynomial)
      add_gauss(all, from, width);
    else
      add_tanh_sinh(all, level, width, 3, [&](double below, double) { return from + width * below; });
  }
  return normalised(std::move(all));
}

Quadrature logistic_quadrature(const Pieces& pieces, int level) {
  if (pieces.breaks.size() > 1) throw Bug("logistic noise is integrated over with one break at most");
  Quadrature all;
  if (pieces.breaks.empty()) {
    add_tanh_sinh(all, level, 1, reach_of(40), [](double below, double above) { return std::log(below) - std::log(above); });
    return normalised(std::move(all));
  }
  // Below the break lies the probability q = sigmoid(break); of the share w of it, logit(q w) = log(q w) - log(1 - q + q (1 -
  // w)).
  const auto side = [&](double edge, double sign) {
    const double log_q = edge > 0 ? -std::log1p(std::exp(-edge)) : edge - std::log1p(std::exp(edge));
    const double q = std::exp(log_q), rest = 1 / (1 + std::exp(edge));
    add_tanh_sinh(all, level, q, reach_of(std::abs(edge)),
                  [&](double below, double above) { return sign * (log_q + std::log(below) - std::log(rest + q * above)); });
  };
  side(pieces.breaks[0], 1);
  side(-pieces.breaks[0], -1);
  return normalised(std::move(all));
}

double quadrature_error(double coarse, double fine, double scale) {
  if (fine <= 1e-13 * scale) return fine;
  const double gain = coarse > 0 ? fine / coarse : 1;
  if (gain < 0.03) return fine;
  return gain < 1 ? coarse + fine : std::numeric_limits<double>::infinity();
}

}  // namespace hardgrad
