#include "experiments/measurement/replicate_statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <utility>

#include "core/support/array.hpp"
#include "experiments/measurement/lengths.hpp"

namespace hardgrad::measurement {
namespace {

// Sums of squares that cancel to less than this share are rounding, so an estimate without noise has variance 0.
constexpr double rounding = 1e-12;
double beyond_rounding(double scatter, double squares) { return scatter > rounding * squares ? scatter : 0; }
double scatter_of(double squares, double sum, double count) { return beyond_rounding(squares - sum * sum / count, squares); }

}  // namespace

ReplicateStatistics::ReplicateStatistics(ReplicateSums sums) : sums_(std::move(sums)) {
  for (int b = sums_.next(); b < sums_.blocks(); ++b) sums_.complete(b);
  cost_ = cost();
  scatter_ = scatter();
  variance_ = scatter_.variance;
  exponent_ = extreme_exponent(variance_);
  scatter_.divide_by_power_of_two(exponent_);
  cosine_ = sums_.total_.cosine.sum / sums_.total_.weight;
}

double ReplicateStatistics::effective_sample_size() const {
  if (!(variance_ > 0)) return 0;
  return 1 / (1.0 / sums_.total_.count + scatter_.error_squared() / (scatter_.variance * scatter_.variance));
}

ReplicateStatistics::Tail ReplicateStatistics::tail() const {
  const auto top = std::min(static_cast<std::size_t>(std::sqrt(sums_.total_.count)), ReplicateSums::kept - 1);
  std::vector<double> all;
  for (const auto& block : sums_.blocks_) all.insert(all.end(), block.largest.begin(), block.largest.end());
  if (sums_.total_.count < 100 || all.size() <= top) return {std::nan(""), std::nan("")};
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(top), all.end(), std::greater<>());
  const double largest = *std::max_element(all.begin(), all.end());
  if (!(all[top] > 1e-20 * largest)) return {std::nan(""), std::nan("")};  // too few replicates deviate
  double logs = 0;
  for (std::size_t i = 0; i < top; ++i) logs += std::log(all[i] / all[top]);
  return {static_cast<double>(top) / logs, 1 / std::sqrt(top)};
}

std::vector<double> ReplicateStatistics::centred(std::size_t first, std::size_t n) const {
  std::vector<double> sums(sums_.blocks_.size() * n);
  for (std::size_t k = 0; k < sums_.blocks_.size(); ++k)
    for (std::size_t i = 0; i < n; ++i)
      sums[k * n + i] =
          sums_.blocks_[k].sum[first + i] - sums_.total_.sum[first + i] / sums_.total_.weight * sums_.blocks_[k].weight;
  return sums;
}

BlockMoments ReplicateStatistics::scatter() const {
  const std::size_t B = sums_.blocks_.size();
  BlockMoments result{std::vector<double>(B), std::vector<double>(B), std::vector<double>(B * B)};
  const double length =
      dot(sums_.total_.sum, sums_.total_.sum) / sums_.total_.weight / sums_.total_.weight;  // of the mean, squared
  for (std::size_t k = 0; k < B; ++k) {
    result.count[k] = sums_.blocks_[k].weight;
    result.squares[k] = sums_.blocks_[k].squared - 2 * dot(sums_.blocks_[k].sum, sums_.total_.sum) / sums_.total_.weight +
                        sums_.blocks_[k].weight * length;
  }
  in_pieces(sums_.reference_.size(), 256, [&](std::size_t first, std::size_t n) {
    const auto sums = centred(first, n);
    for (std::size_t k = 0; k < B; ++k)
      for (std::size_t l = 0; l <= k; ++l)
        result.gram[k * B + l] += dot(std::span(sums).subspan(k * n, n), std::span(sums).subspan(l * n, n));
  });
  for (std::size_t k = 0; k < B; ++k)
    for (std::size_t l = 0; l < k; ++l) result.gram[l * B + k] = result.gram[k * B + l];
  result.variance = beyond_rounding(sums_.total_.squared - sums_.total_.weight * length, sums_.total_.squared) /
                    (sums_.total_.weight - cost_);
  return result;
}

double ReplicateStatistics::cost() const {
  if (sums_.total_.noise.empty()) return 1;
  const double off = 1 / sums_.total_.weight, length = dot(sums_.total_.sum, sums_.total_.sum) * off * off;
  const double scatter = beyond_rounding(sums_.total_.squared - sums_.total_.weight * length, sums_.total_.squared);
  const double noise =
      sums_.total_.noise_squared - 2 * off * dot(sums_.total_.sum, sums_.total_.noise) + sums_.total_.weight_squares * length;
  return scatter > 0 ? std::max(0.0, noise / scatter) : 1;
}

double ReplicateStatistics::noise_of(const ReplicateSums::Sums& of) const {
  const double m = sums_.total_.count, w = sums_.total_.weight, mean = of.sum / w;
  const double scatter = of.squares - 2 * mean * of.noise + mean * mean * sums_.total_.weight_squares;
  return beyond_rounding(scatter, of.squares) / (w * w) * m / (m - 1);
}

double ReplicateStatistics::scale() const {
  const double between = scatter_.trace_between();
  return between > 0 ? scatter_.variance / effective_count() / between : 0;
}

double ReplicateStatistics::along(const std::vector<double>& direction) const {
  const double whole = dot(sums_.total_.sum, direction) / sums_.total_.weight;
  double scatter = 0;
  for (const auto& block : sums_.blocks_) {
    const double off = dot(block.sum, direction) - block.weight * whole;
    scatter += off * off / block.weight;
  }
  return scale() * scatter / (static_cast<double>(sums_.blocks_.size()) - 1);
}

double ReplicateStatistics::overlap(const ReplicateStatistics& other, double trace) const {
  const std::size_t B = sums_.blocks_.size(), C = other.sums_.blocks_.size();
  std::vector<double> products(B * C);
  in_pieces(sums_.reference_.size(), 256, [&](std::size_t first, std::size_t n) {
    const auto mine = centred(first, n), its = other.centred(first, n);
    for (std::size_t k = 0; k < B; ++k)
      for (std::size_t l = 0; l < C; ++l)
        products[k * C + l] += dot(std::span(mine).subspan(k * n, n), std::span(its).subspan(l * n, n));
  });
  double squares = 0;
  for (std::size_t k = 0; k < B; ++k)
    for (std::size_t l = 0; l < C; ++l) {
      const double product = products[k * C + l] / trace;
      squares += product * product / (sums_.blocks_[k].weight * other.sums_.blocks_[l].weight);
    }
  return scale() * other.scale() * squares / ((static_cast<double>(B) - 1) * (static_cast<double>(C) - 1));
}

SquaredLength ReplicateStatistics::distance(const std::vector<double>& other, const ReplicateStatistics* noisy) const {
  auto d = mean();
  add_in_place(d, -xt::adapt(other));
  const double observed = dot(d, d), trace = mean_noise();
  MeanNoise noise{trace, scatter_.concentration(), 0, sums_.total_.count - 1.0, d.size()};
  if (observed > 0) xt::adapt(d) /= std::sqrt(observed);
  noise.along = observed > 0 ? along(d) : trace * std::sqrt(noise.concentration);
  if (noisy) {
    const double more = noisy->mean_noise(), sum = trace + more;
    const double share = sum > 0 ? trace / sum : 0, other_share = sum > 0 ? more / sum : 0;
    noise.freedom =
        sum > 0 ? 1 / (share * share / noise.freedom + other_share * other_share / (noisy->sums_.total_.count - 1.0)) : 1;
    noise.concentration = share * share * noise.concentration + other_share * other_share * noisy->scatter_.concentration();
    if (sum > 0) noise.concentration += 2 * overlap(*noisy, sum);
    noise.along += noisy->along(d);
    noise.trace = sum;
  }
  return {observed, noise};
}

Interval ReplicateStatistics::variance_interval(double level) const {
  const auto [low, high] = measurement::variance_interval(scatter_, level);
  return {std::ldexp(low, exponent_), std::ldexp(high, exponent_)};
}

std::vector<double> ReplicateStatistics::mean() const {
  auto mean = sums_.reference_;
  add_in_place(mean, xt::adapt(sums_.total_.sum) / sums_.total_.weight);
  return mean;
}

std::vector<double> ReplicateStatistics::variances() const {
  auto result = sums_.total_.squares;
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = scatter_of(result[i], sums_.total_.sum[i], sums_.total_.weight) / (sums_.total_.weight - cost_);
  return result;
}

Interval ReplicateStatistics::cosine_interval(double level) const {
  if (!sums_.whole_) return {std::nan(""), std::nan("")};
  if (!(variance_ > 0)) return {cosine_, cosine_};
  const double m = sums_.total_.count, most = 1 - cosine_ * cosine_;
  const double share = most > rounding ? noise_of(sums_.total_.cosine) / most : 1 / m;
  const double t = boost::math::quantile(boost::math::students_t(m - 1), 0.5 + level / 2), k = t * t * share;
  const double half = std::sqrt(k * std::max(0.0, most) + k * k);
  return {(cosine_ - half) / (1 + k), std::min(1.0, (cosine_ + half) / (1 + k))};
}

bool ReplicateStatistics::without_noise(double resolution) const { return std::sqrt(mean_noise()) <= resolution * 1e-3; }

double ReplicateStatistics::bias_p_value(double resolution, double doubt) const {
  const double off = std::sqrt(dot(sums_.total_.sum, sums_.total_.sum)) / sums_.total_.weight;
  if (off <= resolution) return 1;
  if (without_noise(resolution)) return off <= doubt;
  return distance(sums_.reference_).p_value(doubt);
}

double ReplicateStatistics::corrected_bias_p_value(double resolution) const {
  if (!sums_.whole_) return std::nan("");
  const double m = sums_.total_.count, w = sums_.total_.weight;
  double smallest = 1;
  for (std::size_t k = 0; k < sums_.directions(); ++k) {
    const double mean = sums_.total_.along[k].sum / w;
    if (std::abs(mean) <= resolution) continue;
    if (without_noise(resolution)) return 0;
    const double t =
        std::abs(mean) / std::sqrt(noise_of(sums_.total_.along[k]) + sums_.total_.along_most / (w * w) * m / (m - 1));
    smallest = std::min(smallest, 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(m - 1), t)));
  }
  return std::min(1.0, smallest * static_cast<double>(std::max<std::size_t>(1, sums_.directions())));
}

}  // namespace hardgrad::measurement
