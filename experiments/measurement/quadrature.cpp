#include "experiments/measurement/quadrature.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "core/support/array.hpp"
#include "experiments/measurement/lengths.hpp"

namespace hardgrad::measurement {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double log_sigmoid(double z) { return z > 0 ? -std::log1p(std::exp(-z)) : z - std::log1p(std::exp(z)); }

template <class Law>
std::vector<Stretch> between(std::vector<double> ends, Law law) {
  std::sort(ends.begin(), ends.end());
  std::vector<Stretch> stretches;
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (ends[i] > ends[i - 1]) stretches.push_back(law(ends[i - 1], ends[i]));
  return stretches;
}

}  // namespace

Stretch Stretch::uniform(double from, double to) {
  Stretch stretch;
  stretch.first_ = from;
  stretch.mass_ = to - from;
  return stretch;
}

Stretch Stretch::logistic(double from, double to) {
  Stretch stretch;
  stretch.logistic_ = true;
  stretch.depth_ = std::isinf(from) ? std::isinf(to) ? 0 : std::abs(to) : std::isinf(to) ? std::abs(from) : to - from;
  stretch.mirrored_ = from + to > 0;
  if (stretch.mirrored_) from = -std::exchange(to, -from);
  stretch.log_last_ = log_sigmoid(to);
  const double log_first = log_sigmoid(from);
  stretch.first_ = std::exp(log_first);
  stretch.mass_ = std::exp(stretch.log_last_) * -std::expm1(log_first - stretch.log_last_);
  stretch.rest_ = 1 / (1 + std::exp(to));
  return stretch;
}

// On a tail u = sigmoid(z) is small, and z = log u - log(1 - u) is exact to rounding.
double Stretch::at(double below, double above) const {
  if (!logistic_) return first_ + mass_ * below;
  if (mirrored_) std::swap(below, above);
  const double log_u = first_ > 0 ? std::log(first_ + mass_ * below) : log_last_ + std::log(below);
  const double z = log_u - std::log(rest_ + mass_ * above);
  return mirrored_ ? -z : z;
}

std::vector<Stretch> uniform_stretches(std::span<const double> breaks) {
  std::vector<double> ends{0, 1};
  for (double b : breaks)
    if (b > 0 && b < 1) ends.push_back(b);
  return between(std::move(ends), Stretch::uniform);
}

std::vector<Stretch> logistic_stretches(double edge, std::span<const double> breaks) {
  constexpr double near = 40;
  std::vector<double> ends{-infinity, edge, infinity};
  ends.insert(ends.end(), breaks.begin(), breaks.end());
  if (std::abs(edge) > 2 * near) ends.push_back(edge < 0 ? edge + near : edge - near);
  return between(std::move(ends), Stretch::logistic);
}

namespace {

/// Scales each rule's weights to sum to 1.
Quadrature normalised(Quadrature q) {
  for (auto& weights : q.weights) xt::adapt(weights) /= xt::sum(xt::adapt(weights))();
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

Support support_of(Standard noise) {
  switch (noise) {
    case Standard::normal: return {-8.6, 8.6};
    case Standard::weibull: return {0, 9};
    case Standard::double_maxwell: return {-9, 9};
    case Standard::uniform: return {0, 1};
  }
  return {0, 1};
}

GaussRule pieced_rule(Standard noise, int pieces, std::span<const double> breaks) {
  const auto [from, to] = support_of(noise);
  std::vector<double> ends;
  for (int i = 0; i <= pieces; ++i) ends.push_back(from + (to - from) * i / pieces);
  for (double b : breaks)
    if (b > from && b < to) ends.push_back(b);
  std::sort(ends.begin(), ends.end());
  constexpr int nodes = 6;
  const auto& legendre = gauss_rule(Standard::uniform, nodes);
  GaussRule rule;
  for (std::size_t i = 1; i < ends.size(); ++i)
    for (int k = 0; k < nodes; ++k) {
      const double width = ends[i] - ends[i - 1], z = ends[i - 1] + width * legendre.points[k];
      rule.points.push_back(z);
      rule.weights.push_back(width * legendre.weights[k] * standard_density(noise, z));
    }
  xt::adapt(rule.weights) /= xt::sum(xt::adapt(rule.weights))();
  return rule;
}

std::vector<double> jumps_of(const std::function<std::span<const double>(double)>& f, Standard noise) {
  constexpr int steps = 101;  // a prime: no grid point is a round number
  const auto [from, to] = support_of(noise);
  const auto value = [&](double z) {
    const auto x = f(z);
    return std::vector<double>(x.begin(), x.end());
  };
  std::vector<std::vector<double>> at;
  double size = 0;
  for (int i = 0; i <= steps; ++i) {
    at.push_back(value(from + (to - from) * i / steps));
    size = std::max(size, length_of(at.back()));
  }
  std::vector<double> change;
  for (int i = 0; i < steps; ++i) change.push_back(distance_between(at[i + 1], at[i]));
  std::vector<double> jumps;
  for (int i = 0; i < steps; ++i) {
    const double before = i > 0 ? change[i - 1] : change[i + 1], after = i + 1 < steps ? change[i + 1] : before;
    if (!(change[i] > 2 * std::min(before, after) && change[i] > 1e-9 * size)) continue;
    double low = from + (to - from) * i / steps, high = from + (to - from) * (i + 1) / steps, left = change[i];
    auto below = at[i], above = at[i + 1];
    for (int halving = 0; halving < 48 && left > 1e-9 * size; ++halving) {
      const double middle = (low + high) / 2;
      auto x = value(middle);
      const double lower = distance_between(x, below), upper = distance_between(above, x);
      left = std::max(lower, upper);
      if (lower > upper) {
        high = middle;
        above = std::move(x);
      } else {
        low = middle;
        below = std::move(x);
      }
      if (halving == 5 && left < change[i] / 16) break;  // smooth: six halvings leave a 64th
    }
    if (high - low < (to - from) * 1e-14) jumps.push_back((low + high) / 2);
  }
  return jumps;
}

}  // namespace hardgrad::measurement
