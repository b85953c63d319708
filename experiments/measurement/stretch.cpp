#include "experiments/measurement/stretch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

}  // namespace hardgrad::measurement
