#include "experiments/measurement/squared_length.hpp"

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "experiments/measurement/lengths.hpp"

namespace hardgrad::measurement {
namespace {

using boost::math::cdf;
using boost::math::complement;
// In double precision throughout: Boost's default, long double, takes three times as long.
using Plain = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using fisher_f = boost::math::fisher_f_distribution<double, Plain>;
using students_t = boost::math::students_t_distribution<double, Plain>;

/// The point between `low` and `high` where a monotone f changes sign.
template <class F>
double crossing(F f, double low, double high) {
  const double at_low = f(low), at_high = f(high);
  if (at_low == 0 || (at_low > 0) == (at_high > 0)) return low;
  std::uintmax_t steps = 100;
  const auto ends =
      boost::math::tools::toms748_solve(f, low, high, at_low, at_high, boost::math::tools::eps_tolerance<double>(22), steps);
  return (ends.first + ends.second) / 2;
}

}  // namespace

SquaredLength::SquaredLength(double observed, const MeanNoise& noise)
    : unbiased_(observed - noise.trace),
      exponent_(extreme_exponent(noise.trace)),
      observed_(std::ldexp(observed, -exponent_)),
      noise_(noise) {
  constexpr double lost = 0x1p-400;
  if (!(noise.trace > lost * observed)) {
    noise_.trace = exponent_ = 0;
    observed_ = observed;
    return;
  }
  noise_.trace = std::ldexp(noise.trace, -exponent_);
  noise_.along = std::ldexp(noise.along, -exponent_);
  const double others = static_cast<double>(noise_.dimensions) - 1;
  squares_ = noise_.concentration * noise_.trace * noise_.trace;
  squares_ = std::clamp(squares_, noise_.trace * noise_.trace / (others + 1), noise_.trace * noise_.trace);
  noise_.along = others > 0 ? std::min(noise_.along, std::sqrt(squares_)) : noise_.trace;
  rest_ = noise_.trace - noise_.along;
  if (rest_ <= 1e-9 * noise_.trace) {
    noise_.along = noise_.trace;
    rest_ = 0;
    return;
  }
  const double squares = squares_ - noise_.along * noise_.along;
  rest_freedom_ = std::clamp(squares > 0 ? rest_ * rest_ / squares : others, 1.0, others);
}

double SquaredLength::above(double length) const {
  const double root = std::sqrt(observed_), error = std::sqrt(noise_.along);
  if (!(noise_.trace > 0)) return length >= root ? 1 : 0;  // without noise only the length itself is observed
  const students_t t(noise_.freedom);
  const auto beyond = [&] {  // the noise along b alone is long enough
    return cdf(complement(t, (root - length) / error)) + cdf(t, (-root - length) / error);
  };
  if (rest_ == 0) return std::min(1.0, beyond());
  const fisher_f others(rest_freedom_, noise_.freedom * rest_freedom_);
  const auto joint = [&](double angle) {  // b and the noise along it are sqrt(observed) sin(angle) long
    const double along = root * std::sin(angle), left = root * std::cos(angle);
    if (left <= 0) return 0.0;
    const double density = error > 0 ? pdf(t, (along - length) / error) / error : 0;
    return density > 0 ? density * left * cdf(complement(others, left * left / rest_)) : 0;
  };
  if (error == 0) return length >= root ? 1 : cdf(complement(others, (observed_ - length * length) / rest_));
  // The ends of pieces between which either factor may change sharply.
  constexpr double right_angle = std::numbers::pi / 2;
  std::vector<double> ends{-right_angle, right_angle};
  const auto split = [&](double along) {
    if (std::abs(along) < root) ends.push_back(std::asin(along / root));
  };
  for (double far : {-4.0, 0.0, 4.0}) split(length + far * error);
  if (observed_ > rest_) split(std::sqrt(observed_ - rest_)), split(-std::sqrt(observed_ - rest_));
  std::sort(ends.begin(), ends.end());
  double inside = 0;
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (ends[i] > ends[i - 1])
      inside += boost::math::quadrature::gauss_kronrod<double, 15>::integrate(joint, ends[i - 1], ends[i], 5, 1e-7);
  return std::min(1.0, inside + beyond());
}

Interval SquaredLength::interval(double level) const {
  if (!(noise_.trace > 0)) return {observed_, observed_};
  const double left_out = 1 - level, freedom = noise_.trace * noise_.trace / squares_;
  // The point at which |d|^2 first differs significantly from noise alone, minus the mean of the noise: there a(|b|) begins to
  // grow.
  const double lost = noise_.trace * (quantile(fisher_f(freedom, noise_.freedom * freedom), level) - 1);
  const auto below_share = [&](double length) {
    const double signal = length * length / lost;
    return signal > 1 ? left_out / 2 * (1 - 1 / (signal * signal)) : 0;
  };
  const auto too_long = [&](double length) { return above(length) - (left_out - below_share(length)); };
  const auto too_short = [&](double length) { return 1 - above(length) - below_share(length); };
  const double root = std::sqrt(observed_);
  const double low = too_long(0) >= 0 ? 0 : crossing(too_long, 0, root);
  double far = root + std::sqrt(lost);
  while (too_short(far) > 0) far *= 2;
  const double high = crossing(too_short, std::sqrt(lost), far);
  return {std::ldexp(low * low, exponent_), std::ldexp(high * high, exponent_)};
}

}  // namespace hardgrad::measurement
