#include "experiments/measurement/quadrature.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <numbers>
#include <numeric>

namespace hardgrad {
namespace {

void add_gauss(Quadrature& to, double from, double width) {
  using Rule = boost::math::quadrature::gauss<double, 6>;
  for (std::size_t i = 0; i < Rule::abscissa().size(); ++i)
    for (double side : {-1.0, 1.0}) {
      to.points.push_back(from + width * (1 + side * Rule::abscissa()[i]) / 2);
      to.weights.push_back(width * Rule::weights()[i] / 2);
    }
}

void add_tanh_sinh(Quadrature& to, double from, double width) {
  constexpr double step = 1.0 / 32, end = 3;  // beyond it the weights are below 1e-12
  for (double t = -end; t <= end; t += step) {
    const double a = std::numbers::pi / 2 * std::sinh(t);
    const double below = 1 / (1 + std::exp(-2 * a)), above = 1 / (1 + std::exp(2 * a));  // the point, and 1 - the point
    to.points.push_back(from + width * below);
    to.weights.push_back(width * step * std::numbers::pi * std::cosh(t) * below * above);
  }
}

}  // namespace

Quadrature quadrature(const Pieces& pieces) {
  std::vector<double> ends{0, 1};
  for (double b : pieces.breaks)
    if (b > 0 && b < 1) ends.push_back(b);
  std::sort(ends.begin(), ends.end());
  Quadrature all;
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (const double width = ends[i] - ends[i - 1]; width > 0)
      (pieces.polynomial ? add_gauss : add_tanh_sinh)(all, ends[i - 1], width);
  const double total = std::accumulate(all.weights.begin(), all.weights.end(), 0.0);
  for (auto& w : all.weights) w /= total;
  return all;
}

}  // namespace hardgrad
