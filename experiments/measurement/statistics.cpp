#include "experiments/measurement/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace hardgrad {
namespace {

// Sums of squares that cancel to less than this share are rounding: an estimate without noise has variance 0.
constexpr double rounding = 1e-12;
double beyond_rounding(double scatter, double squares) { return scatter > rounding * squares ? scatter : 0; }
double scatter_of(double squares, double sum, double count) { return beyond_rounding(squares - sum * sum / count, squares); }
/// Sums in lanes, which fill a register: one after the other would wait for each other.
double dot(std::span<const double> a, std::span<const double> b) {
  double lanes[32] = {}, sum = 0;
  for (std::size_t first = 0; first < a.size(); first += 32) {
    const std::size_t n = std::min<std::size_t>(32, a.size() - first);
    const double *x = a.data() + first, *y = b.data() + first;
    for (std::size_t j = 0; j < n; ++j) lanes[j] += x[j] * y[j];
  }
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

Replicates::Replicates(std::vector<double> reference, int directions, int replicates)
    : reference_(std::move(reference)),
      reference_norm_(std::sqrt(dot(reference_, reference_))),
      probes_(reference_.size(), directions, Key(7) / "direction"),
      replicates_(replicates) {
  blocks_.resize(std::min(replicates, 32));
  total_.sum.resize(reference_.size());
  total_.squares.resize(reference_.size());
  total_.along.resize(this->directions());
  total_.along_squares.resize(this->directions());
}

std::array<int, 2> Replicates::range(int block) const {
  const auto at = [&](int b) { return static_cast<int>(static_cast<long long>(replicates_) * b / blocks()); };
  return {at(block), at(block + 1)};
}

void Replicates::add(int index, std::span<const double> gradient) {
  auto& block = blocks_[index];
  if (block.sum.empty()) {
    block.sum.resize(reference_.size());
    block.squares.resize(reference_.size());
    block.along.resize(directions());
    block.along_squares.resize(directions());
  }
  ++block.count;
  static thread_local std::vector<double> d;  // as long as the gradient: not to be asked for again and again
  d.resize(reference_.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    d[i] = gradient[i] - reference_[i];
    block.sum[i] += d[i];
    block.squares[i] += d[i] * d[i];
  }
  auto along = probes_(d);
  if (reference_norm_ > 0) {
    along.push_back(dot(d, reference_) / reference_norm_);
    const double length = std::sqrt(dot(gradient, gradient));
    if (length > 0) block.cosine += (along.back() + reference_norm_) / length;
  }
  for (std::size_t k = 0; k < along.size(); ++k) {
    block.along[k] += along[k];
    block.along_squares[k] += along[k] * along[k];
  }
}

void Replicates::complete(int index) {
  const std::lock_guard lock(*summing_);
  blocks_[index].complete = true;
  for (; summed_ < blocks() && blocks_[summed_].complete; ++summed_) {
    auto& block = blocks_[summed_];
    total_.count += block.count;
    total_.cosine += block.cosine;
    for (std::size_t i = 0; i < total_.sum.size(); ++i) {
      total_.sum[i] += block.sum[i];
      total_.squares[i] += block.squares[i];
      block.squared += block.squares[i];
    }
    total_.squared += block.squared;
    for (std::size_t k = 0; k < directions(); ++k) {
      total_.along[k] += block.along[k];
      total_.along_squares[k] += block.along_squares[k];
    }
    block.squares = {};
  }
}

void Replicates::finish() {
  for (int b = summed_; b < blocks(); ++b) complete(b);
  const auto all = moments_without(-1);
  variance_ = all.variance;
  squared_bias_ = all.squared_bias;
  cosine_ = all.cosine;
}

Replicates::Moments Replicates::moments_without(int index) const {
  static const Block nothing;
  const auto& left_out = index < 0 ? nothing : blocks_[index];
  const double m = total_.count - left_out.count;
  const double squares = total_.squared - left_out.squared;
  double mean_squared = 0;
  for (std::size_t i = 0; i < total_.sum.size(); ++i) {
    const double mean = (total_.sum[i] - (index < 0 ? 0 : left_out.sum[i])) / m;
    mean_squared += mean * mean;
  }
  const double variance = beyond_rounding(squares - m * mean_squared, squares) / (m - 1);
  return {variance, mean_squared - variance / m, (total_.cosine - left_out.cosine) / m};
}

std::vector<double> Replicates::mean() const {
  auto mean = reference_;
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += total_.sum[i] / total_.count;
  return mean;
}

std::vector<double> Replicates::variances() const {
  auto result = total_.squares;
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = scatter_of(result[i], total_.sum[i], total_.count) / (total_.count - 1);
  return result;
}

double Replicates::squared_bias(const std::vector<double>& other) const {
  double distance = 0;
  for (std::size_t i = 0; i < other.size(); ++i) {
    const double d = reference_[i] + total_.sum[i] / total_.count - other[i];
    distance += d * d;
  }
  return distance - variance_ / total_.count;
}

template <class F>
Interval Replicates::jackknife(double level, double estimate, F of) const {
  const int n = blocks();
  if (n < 2 || total_.count - blocks_[0].count < 2) return {std::nan(""), std::nan("")};
  std::vector<double> values(n);
  double mean = 0, squares = 0;
  for (int k = 0; k < n; ++k) mean += (values[k] = of(moments_without(k))) / n;
  for (double v : values) squares += (v - mean) * (v - mean);
  const double error = std::sqrt(squares * (n - 1) / n);
  const double t = boost::math::quantile(boost::math::students_t(n - 1), 0.5 + level / 2);
  return {estimate - t * error, estimate + t * error};
}

Interval Replicates::variance_interval(double level) const {
  auto interval = jackknife(level, variance_, [](const auto& m) { return m.variance; });
  interval[0] = std::max(0.0, interval[0]);
  return interval;
}
Interval Replicates::squared_bias_interval(double level) const {
  return jackknife(level, squared_bias_, [](const auto& m) { return m.squared_bias; });
}
Interval Replicates::cosine_interval(double level) const {
  return jackknife(level, cosine_, [](const auto& m) { return m.cosine; });
}

double Replicates::bias_p_value(double resolution) const {
  const double m = total_.count;
  double smallest = 1;
  for (std::size_t k = 0; k < directions(); ++k) {
    const double mean = total_.along[k] / m;
    const double variance = scatter_of(total_.along_squares[k], total_.along[k], m) / (m - 1);
    if (std::abs(mean) <= resolution) continue;
    const double error = std::sqrt(variance / m);
    if (error <= resolution * 1e-3) return 0;  // no noise, and not where it should be
    const double t = std::abs(mean) / error;
    smallest = std::min(smallest, 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(m - 1), t)));
  }
  return std::min(1.0, smallest * static_cast<double>(std::max<std::size_t>(1, directions())));
}

}  // namespace hardgrad
