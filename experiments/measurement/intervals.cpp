#include "experiments/measurement/intervals.hpp"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/random/randomness.hpp"
#include "core/support/array.hpp"
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

namespace {

double sum(const std::vector<double>& x) { return xt::sum(xt::adapt(x))(); }

/// The variance, and summary statistics of the leave-one-block-out variances, of blocks with given multiplicities.
struct Jackknife {
  double variance, scatter;  // squared error of `variance`
  double kurtosis;           // of the leave-one-out variances
};

Jackknife jackknife(const BlockMoments& b, const std::vector<double>& times) {
  const std::size_t B = b.blocks();
  double vectors = 0, squares = 0, length = 0, blocks = 0;
  std::vector<double> along(B);  // inner products of each block's sum with the total
  for (std::size_t k = 0; k < B; ++k) {
    vectors += times[k] * b.count[k];
    squares += times[k] * b.squares[k];
    blocks += times[k];
    for (std::size_t l = 0; l < B; ++l) along[k] += times[l] * b.gram[k * B + l];
  }
  for (std::size_t k = 0; k < B; ++k) length += times[k] * along[k];
  std::vector<double> without(B);
  double mean = 0;
  for (std::size_t k = 0; k < B; ++k) {
    const double n = vectors - b.count[k];
    without[k] = (squares - b.squares[k] - (length - 2 * along[k] + b.gram[k * B + k]) / n) / (n - 1);
    mean += times[k] * without[k] / blocks;
  }
  double second = 0, fourth = 0;
  for (std::size_t k = 0; k < B; ++k) {
    const double off = (without[k] - mean) * (without[k] - mean);
    second += times[k] * off;
    fourth += times[k] * off * off;
  }
  return {(squares - length / vectors) / (vectors - 1), second * (blocks - 1) / blocks,
          second > 0 ? blocks * fourth / (second * second) : 3};
}

/// True if there are too few blocks to leave one out.
bool too_few(const BlockMoments& b) { return b.blocks() < 3; }

/// A lower bound of the variance's squared error, relative to its square.
double least_error(const BlockMoments& b) {
  const double n = b.vectors();
  return 2 * b.concentration() / (too_few(b) ? n - 1 : n * (n - 1));
}

Interval by_chi_square(const BlockMoments& b, double level) {
  const double B = static_cast<double>(b.blocks());
  double inflation = 1;
  if (!too_few(b)) {  // the jackknife's error is uncertain, more so with heavy tails
    const double kurtosis = jackknife(b, std::vector<double>(b.blocks(), 1)).kurtosis;
    const double freedom = std::clamp(2 * B / (kurtosis - 1 + 2 / (B - 1)), 1.0, B - 1);
    inflation = quantile(boost::math::students_t(freedom), 0.5 + level / 2) / quantile(boost::math::normal(), 0.5 + level / 2);
  }
  const double freedom = 2 * b.variance * b.variance / (b.error_squared() * inflation * inflation);
  const boost::math::chi_squared law(freedom);
  const double least = quantile(law, (1 - level) / 2);
  return {b.variance * freedom / quantile(law, (1 + level) / 2),
          least > 0 ? b.variance * freedom / least : std::numeric_limits<double>::infinity()};
}

Interval by_bootstrap(const BlockMoments& b, double level) {
  constexpr int resamples = 999;
  const std::size_t B = b.blocks();
  const double least = least_error(b), own = b.variance, plain = sum(b.squares) / b.vectors();
  const auto error = [&](const Jackknife& j) { return std::sqrt(std::max(j.scatter / (j.variance * j.variance), least)); };
  KeyedRandomness random(Key(11) / "resample");
  std::vector<double> off;
  for (std::uint32_t r = 0; r < resamples; ++r) {
    std::vector<double> times(B);
    for (std::uint32_t k = 0; k < B; ++k) ++times[random.below(B, {.replica = r, .index = k})];
    const auto j = jackknife(b, times);
    if (j.variance > 1e-12 * own) off.push_back((std::log(j.variance) - std::log(plain)) / error(j));
  }
  if (off.size() < resamples / 2) return {own, own};
  std::sort(off.begin(), off.end());
  const auto at = [&](double share) { return off[static_cast<std::size_t>(share * static_cast<double>(off.size()))]; };
  const double scale = error(jackknife(b, std::vector<double>(B, 1)));
  return {own * std::exp(-at((1 + level) / 2) * scale), own * std::exp(-at((1 - level) / 2) * scale)};
}

}  // namespace

double BlockMoments::vectors() const { return sum(count); }

double BlockMoments::trace_between() const {
  const auto diagonal = xt::view(xt::adapt(gram), xt::range(0, gram.size(), blocks() + 1));
  return xt::sum(diagonal / xt::adapt(count))() / (static_cast<double>(blocks()) - 1);
}

double BlockMoments::concentration() const {
  const double f = static_cast<double>(blocks()) - 1, trace = trace_between();
  if (f < 2 || !(trace > 0)) return 1;
  double squares = 0;
  for (std::size_t k = 0; k < blocks(); ++k)
    for (std::size_t l = 0; l < blocks(); ++l) {
      const double g = gram[k * blocks() + l];
      squares += g * g / (count[k] * count[l] * f * f);
    }
  const double of_square = f * f / ((f - 1) * (f + 2)) * (squares - trace * trace / f);
  const double square_of = trace * trace - 2 * of_square / f;
  return of_square > 0 ? std::min(1.0, of_square / square_of) : 0;
}

double BlockMoments::error_squared() const {
  const double least = least_error(*this) * variance * variance;
  return too_few(*this) ? least : std::max(least, jackknife(*this, std::vector<double>(blocks(), 1)).scatter);
}

void BlockMoments::divide_by_power_of_two(int exponent) {
  if (exponent == 0) return;
  for (auto* all : {&squares, &gram})
    for (double& x : *all) x = std::ldexp(x, -exponent);
  variance = std::ldexp(variance, -exponent);
}

Interval variance_interval(const BlockMoments& blocks, double level) {
  if (!(blocks.variance > 0)) return {0, 0};
  const auto one = by_chi_square(blocks, level);
  if (too_few(blocks)) return one;
  const auto other = by_bootstrap(blocks, level);
  return {std::min(one[0], other[0]), std::max(one[1], other[1])};
}

}  // namespace hardgrad::measurement
