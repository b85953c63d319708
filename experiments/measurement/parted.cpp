#include "experiments/measurement/parted.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/measurement/lengths.hpp"

namespace hardgrad::measurement {

Reach reach_of(Standard noise) {
  switch (noise) {
    case Standard::normal: return {-8.6, 8.6};
    case Standard::weibull: return {0, 9};
    case Standard::double_maxwell: return {-9, 9};
    case Standard::uniform: return {0, 1};
  }
  return {0, 1};
}

GaussRule pieced_rule(Standard noise, int pieces, std::span<const double> breaks) {
  const auto [from, to] = reach_of(noise);
  std::vector<double> ends;
  for (int i = 0; i <= pieces; ++i) ends.push_back(from + (to - from) * i / pieces);
  for (double b : breaks)
    if (b > from && b < to) ends.push_back(b);
  std::sort(ends.begin(), ends.end());
  constexpr int nodes = 6;
  const auto& legendre = gauss_rule(Standard::uniform, nodes);
  GaussRule rule;
  double total = 0;
  for (std::size_t i = 1; i < ends.size(); ++i)
    for (int k = 0; k < nodes; ++k) {
      const double width = ends[i] - ends[i - 1], z = ends[i - 1] + width * legendre.points[k];
      rule.points.push_back(z);
      rule.weights.push_back(width * legendre.weights[k] * standard_density(noise, z));
      total += rule.weights.back();
    }
  for (double& w : rule.weights) w /= total;
  return rule;
}

std::vector<double> jumps_of(const std::function<std::span<const double>(double)>& f, Standard noise) {
  constexpr int steps = 101;  // a prime: no grid point is a round number
  const auto [from, to] = reach_of(noise);
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
