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

/// How many steps (of 1/32) nodes go in t for the last to be e^-(37 + depth) from the ends: 37 is rounding, `depth` what an
/// integrand may hide there. Beyond `furthest`, e^-697 from the ends, their distances are no longer normal numbers.
constexpr int furthest = 195;
int reach_of(double depth) {
  return std::min(furthest, static_cast<int>(std::ceil(32 * std::asinh((37 + depth) / std::numbers::pi))));
}

/// point(below, above) is the number at a place in (0, 1), given as its distances from both ends; `mass`: of all.
template <class F>
void add_tanh_sinh(Quadrature& to, int level, double mass, int reach, F point) {
  const double step = std::ldexp(1.0, -5 - level);
  const int end = reach << level;
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
      add_tanh_sinh(all, level, width, 3 * 32, [&](double below, double) { return from + width * below; });
  }
  return normalised(std::move(all));
}

// On a tail u = sigmoid(z) is small, and z = log u - log(1 - u) has all digits. `sign` mirrors the line.
Quadrature logistic_quadrature(double edge, int level) {
  Quadrature all;
  const auto log_below = [](double z) { return z > 0 ? -std::log1p(std::exp(-z)) : z - std::log1p(std::exp(z)); };
  // Up to `end`: of the share w of its probability q, logit(q w) = log(q w) - log(1 - q + q (1 - w)).
  const auto side = [&](double end, double sign) {
    const double log_q = log_below(end), q = std::exp(log_q), rest = 1 / (1 + std::exp(end));
    add_tanh_sinh(all, level, q, reach_of(std::abs(end)),
                  [&](double below, double above) { return sign * (log_q + std::log(below) - std::log(rest + q * above)); });
  };
  // From `from` to `to`, both far below zero: u = u_from + q w.
  const auto between = [&](double from, double to, double sign) {
    const double first = std::exp(log_below(from)), q = std::exp(log_below(to)) - first;
    add_tanh_sinh(all, level, q, reach_of(to - from), [&](double below, double) {
      const double u = first + q * below;
      return sign * (std::log(u) - std::log1p(-u));
    });
  };
  // What varies at a far edge does so over lengths of one, where nodes of all that is above it would be twenty apart.
  constexpr double near = 40;
  const double sign = edge < 0 ? 1 : -1, end = -std::abs(edge);
  const bool far = end < -2 * near;
  side(end, sign);
  if (far) between(end, end + near, sign);
  side(far ? -end - near : -end, -sign);
  return normalised(std::move(all));
}

double quadrature_error(double coarse, double fine, double scale) {
  if (fine <= 1e-13 * scale) return fine;
  const double gain = coarse > 0 ? fine / coarse : 1;
  if (gain < 0.03) return fine;
  return gain < 1 ? coarse + fine : std::numeric_limits<double>::infinity();
}

}  // namespace hardgrad
