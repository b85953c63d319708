#include "experiments/measurement/variance_interval.hpp"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random/randomness.hpp"

namespace hardgrad::measurement {
namespace {

double sum(const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

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
  double trace = 0;
  for (std::size_t k = 0; k < blocks(); ++k) trace += gram[k * blocks() + k] / count[k];
  return trace / (static_cast<double>(blocks()) - 1);
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
