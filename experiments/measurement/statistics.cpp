#include "experiments/measurement/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/support/array.hpp"
#include "experiments/measurement/lengths.hpp"

namespace hardgrad::measurement {
namespace {

// Sums of squares that cancel to less than this share are rounding, so an estimate without noise has variance 0.
constexpr double rounding = 1e-12;
double beyond_rounding(double scatter, double squares) { return scatter > rounding * squares ? scatter : 0; }
double scatter_of(double squares, double sum, double count) { return beyond_rounding(squares - sum * sum / count, squares); }
/// A sum of products in lanes that fill registers; sequential additions would wait for each other.
class Dot {
 public:
  void add(const double* x, const double* y, std::size_t n) {
    std::size_t i = 0;
    for (; i + 32 <= n; i += 32)
      for (std::size_t j = 0; j < 32; ++j) lanes_[j] += x[i + j] * y[i + j];
    for (std::size_t j = 0; i + j < n; ++j) lanes_[j] += x[i + j] * y[i + j];
  }
  double sum() const { return std::accumulate(std::begin(lanes_), std::end(lanes_), 0.0); }

 private:
  double lanes_[32] = {};
};
double dot(std::span<const double> a, std::span<const double> b) {
  Dot product;
  product.add(a.data(), b.data(), a.size());
  return product.sum();
}
/// f(first, n) for pieces of at most `most` entries, which fit in the cache.
template <class F>
void in_pieces(std::size_t size, std::size_t most, F f) {
  for (std::size_t first = 0; first < size; first += most) f(first, std::min(most, size - first));
}

}  // namespace

Replicates::Replicates(std::vector<double> reference, int directions, int replicates, int most_blocks,
                       std::vector<std::array<std::size_t, 2>> parts)
    : reference_(std::move(reference)),
      reference_norm_(length_of(reference_)),
      probes_(reference_.size(), directions, Key(7) / "direction"),
      replicates_(replicates),
      most_blocks_(most_blocks),
      parts_(std::move(parts)) {
  blocks_.resize(std::min(replicates, most_blocks));
  total_.sum.resize(reference_.size());
  total_.squares.resize(reference_.size());
  total_.squared_in.resize(parts_.size());
  total_.noise_squared_in.resize(parts_.size());
  total_.along.resize(this->directions());
}

std::array<int, 2> Replicates::range(int block) const {
  const auto at = [&](int b) { return static_cast<int>(static_cast<long long>(replicates_) * b / blocks()); };
  return {at(block), at(block + 1)};
}

void Replicates::Block::add_vectors(const Block& other) {
  const auto join = [](std::vector<double>& into, const std::vector<double>& more) {
    if (into.empty()) into.resize(more.size());
    xt::adapt(into) += xt::adapt(more);
  };
  if (noise.empty() && !other.noise.empty()) noise = sum;  // all weights so far are 1
  if (!noise.empty()) join(noise, other.noise_sum());
  join(sum, other.sum);
}

/// All weights of the block so far are 1.
void Replicates::begin_weights(Block& block) const {
  block.noise = block.sum;
  block.noise_squared = xt::sum(xt::adapt(block.squares))();
  block.noise_squared_in = in_parts(block.squares);
}

std::vector<double> Replicates::in_parts(const std::vector<double>& numbers) const {
  std::vector<double> sums;
  for (const auto& [first, last] : parts_) sums.push_back(xt::sum(xt::view(xt::adapt(numbers), xt::range(first, last)))());
  return sums;
}

void Replicates::add(int index, std::span<const double> gradient, double weight) {
  auto& block = blocks_[index];
  if (block.sum.empty()) {
    block.sum.resize(reference_.size());
    {
      const std::lock_guard lock(*summing_);
      block.squares = std::exchange(spare_, {});  // fresh pages take as long as a replicate
    }
    block.squares.assign(reference_.size(), 0);
    block.along.resize(directions());
  }
  if (weight != 1 && block.noise.empty()) begin_weights(block);
  // One pass in pieces: a gradient of many parameters is not in the cache.
  const double before = block.weight, each = before > 0 ? 1 / before : 0;
  ++block.count;
  block.weight += weight;
  block.weight_squares += weight * weight;
  Dot apart, on_reference, with_reference, squares, deviations;
  std::vector<double> along_lanes(probes_.lanes());
  const std::size_t piece = probes_.lanes() > 0 ? (256 + probes_.lanes() - 1) / probes_.lanes() * probes_.lanes() : 256;
  std::vector<double> deviation(piece), off(piece);
  in_pieces(reference_.size(), piece, [&](std::size_t first, std::size_t n) {
    const double *g = &gradient[first], *r = &reference_[first];
    double* __restrict sum = &block.sum[first], * __restrict of_squares = &block.squares[first];
    double* __restrict d = deviation.data(), * __restrict o = off.data();
    for (std::size_t i = 0; i < n; ++i) {
      d[i] = g[i] - r[i];
      o[i] = d[i] - sum[i] * each;
      sum[i] += weight * d[i];
      of_squares[i] += weight * d[i] * d[i];
    }
    if (!block.noise.empty()) {
      deviations.add(d, d, n);
      for (std::size_t i = 0; i < n; ++i) block.noise[first + i] += weight * weight * d[i];
    }
    apart.add(o, o, n);
    probes_.add(first, {d, n}, along_lanes);
    if (reference_norm_ > 0) {
      on_reference.add(d, r, n);
      with_reference.add(g, r, n);
      squares.add(g, g, n);
    }
  });
  block.noise_squared += weight * weight * deviations.sum();
  for (std::size_t part = 0; part < parts_.size() && !block.noise.empty(); ++part)
    for (std::size_t i = parts_[part][0]; i < parts_[part][1]; ++i)
      block.noise_squared_in[part] += std::pow(weight * (gradient[i] - reference_[i]), 2);
  if (before > 0) keep(block.largest, weight * apart.sum() * before / (before + weight));
  auto along = probes_.along(along_lanes);
  if (reference_norm_ > 0) {
    along.push_back(on_reference.sum() / reference_norm_);
    const double length = std::sqrt(squares.sum());
    const bool safe = length > 1e-140 && length < 1e140 && reference_norm_ > 1e-140 && reference_norm_ < 1e140;
    const double cosine =
        safe ? std::clamp(with_reference.sum() / (length * reference_norm_), -1.0, 1.0) : cosine_between(gradient, reference_);
    if (!std::isnan(cosine)) block.cosine.add(cosine, weight);
  }
  for (std::size_t k = 0; k < along.size(); ++k) {
    block.along[k].add(along[k], weight);
    block.along_most = std::max(block.along_most, weight * weight * along[k] * along[k]);
  }
}

void Replicates::keep(std::vector<double>& largest, double squared) {
  const std::greater<> least_on_top;
  if (largest.size() == kept) {
    if (squared <= largest.front()) return;
    std::pop_heap(largest.begin(), largest.end(), least_on_top);
    largest.back() = squared;
  } else {
    largest.push_back(squared);
  }
  std::push_heap(largest.begin(), largest.end(), least_on_top);
}

void Replicates::grow() {
  auto before = std::move(blocks_);
  const int filled = replicates_;
  replicates_ *= 2;
  blocks_ = std::vector<Block>(std::min(replicates_, most_blocks_));
  int place = 0, into = 0;  // first replicate of a block, and the block that it now belongs to: ends of blocks are kept
  for (auto& block : before) {
    while (range(into)[1] <= place) ++into;
    place += block.count;
    auto& to = blocks_[into];
    to.complete = true;
    to.count += block.count;
    to.weight += block.weight;
    to.weight_squares += block.weight_squares;
    to.squared += block.squared;
    to.noise_squared += block.noise_squared;
    to.add_vectors(block);
    to.squared_in.resize(parts_.size());
    to.noise_squared_in.resize(parts_.size());
    xt::adapt(to.squared_in) += xt::adapt(block.squared_in);
    xt::adapt(to.noise_squared_in) += xt::adapt(block.noise_squared_in);
    for (double squared : block.largest) keep(to.largest, squared);
  }
  for (summed_ = 0; range(summed_)[0] < filled;) ++summed_;
}

double Replicates::effective_sample_size() const {
  if (!(variance_ > 0)) return 0;
  return 1 / (1.0 / total_.count + scatter_.error_squared() / (scatter_.variance * scatter_.variance));
}

Replicates::Tail Replicates::tail() const {
  const auto top = std::min(static_cast<std::size_t>(std::sqrt(total_.count)), kept - 1);
  std::vector<double> all;
  for (const auto& block : blocks_) all.insert(all.end(), block.largest.begin(), block.largest.end());
  if (total_.count < 100 || all.size() <= top) return {std::nan(""), std::nan("")};
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(top), all.end(), std::greater<>());
  const double largest = *std::max_element(all.begin(), all.end());
  if (!(all[top] > 1e-20 * largest)) return {std::nan(""), std::nan("")};  // too few replicates deviate
  double logs = 0;
  for (std::size_t i = 0; i < top; ++i) logs += std::log(all[i] / all[top]);
  return {static_cast<double>(top) / logs, 1 / std::sqrt(top)};
}

void Replicates::complete(int index) {
  const std::lock_guard lock(*summing_);
  blocks_[index].complete = true;
  for (; summed_ < blocks() && blocks_[summed_].complete; ++summed_) {
    auto& block = blocks_[summed_];
    total_.count += block.count;
    total_.weight += block.weight;
    total_.weight_squares += block.weight_squares;
    total_.cosine.join(block.cosine);
    total_.add_vectors(block);
    xt::adapt(total_.squares) += xt::adapt(block.squares);
    block.squared = xt::sum(xt::adapt(block.squares))();
    if (block.noise.empty()) block.noise_squared = block.squared;
    total_.squared += block.squared;
    total_.noise_squared += block.noise_squared;
    block.squared_in = in_parts(block.squares);
    if (block.noise.empty()) block.noise_squared_in = block.squared_in;
    xt::adapt(total_.squared_in) += xt::adapt(block.squared_in);
    xt::adapt(total_.noise_squared_in) += xt::adapt(block.noise_squared_in);
    for (std::size_t k = 0; k < directions(); ++k) total_.along[k].join(block.along[k]);
    total_.along_most = std::max(total_.along_most, block.along_most);
    spare_ = std::move(block.squares);
    block.squares = {};
  }
}

void Replicates::finish() {
  for (int b = summed_; b < blocks(); ++b) complete(b);
  cost_ = cost();
  scatter_ = scatter();
  variance_ = scatter_.variance;
  exponent_ = extreme_exponent(variance_);
  scatter_.divide_by_power_of_two(exponent_);
  cosine_ = total_.cosine.sum / total_.weight;
}

void Replicates::finish_early() {
  std::erase_if(blocks_, [](const Block& block) { return block.count == 0; });
  replicates_ = 0;
  for (const auto& block : blocks_) replicates_ += block.count;
  finish();
}

Replicates Replicates::part(std::size_t index) const {
  const auto [first, last] = parts_.at(index);
  const auto slice = [first = first, last = last](const std::vector<double>& all) {
    return std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(first),
                               all.begin() + static_cast<std::ptrdiff_t>(last));
  };
  Replicates of(slice(reference_), 0, replicates_, most_blocks_);
  of.whole_ = false;
  of.blocks_.resize(blocks_.size());
  const auto take = [&](Block& to, const Block& from) {
    to.count = from.count;
    to.weight = from.weight;
    to.weight_squares = from.weight_squares;
    to.complete = true;
    to.sum = slice(from.sum);
    if (!from.noise.empty()) to.noise = slice(from.noise);
    to.squared = from.squared_in[index];
    to.noise_squared = from.noise_squared_in[index];
  };
  for (std::size_t b = 0; b < blocks_.size(); ++b) take(of.blocks_[b], blocks_[b]);
  take(of.total_, total_);
  of.total_.squares = slice(total_.squares);
  of.total_.cosine.sum = std::nan("");
  of.summed_ = of.blocks();
  of.finish();
  return of;
}

std::vector<double> Replicates::centred(std::size_t first, std::size_t n) const {
  std::vector<double> sums(blocks_.size() * n);
  for (std::size_t k = 0; k < blocks_.size(); ++k)
    for (std::size_t i = 0; i < n; ++i)
      sums[k * n + i] = blocks_[k].sum[first + i] - total_.sum[first + i] / total_.weight * blocks_[k].weight;
  return sums;
}

BlockMoments Replicates::scatter() const {
  const std::size_t B = blocks_.size();
  BlockMoments result{std::vector<double>(B), std::vector<double>(B), std::vector<double>(B * B)};
  const double length = dot(total_.sum, total_.sum) / total_.weight / total_.weight;  // of the mean, squared
  for (std::size_t k = 0; k < B; ++k) {
    result.count[k] = blocks_[k].weight;
    result.squares[k] = blocks_[k].squared - 2 * dot(blocks_[k].sum, total_.sum) / total_.weight + blocks_[k].weight * length;
  }
  in_pieces(reference_.size(), 256, [&](std::size_t first, std::size_t n) {
    const auto sums = centred(first, n);
    for (std::size_t k = 0; k < B; ++k)
      for (std::size_t l = 0; l <= k; ++l)
        result.gram[k * B + l] += dot(std::span(sums).subspan(k * n, n), std::span(sums).subspan(l * n, n));
  });
  for (std::size_t k = 0; k < B; ++k)
    for (std::size_t l = 0; l < k; ++l) result.gram[l * B + k] = result.gram[k * B + l];
  result.variance = beyond_rounding(total_.squared - total_.weight * length, total_.squared) / (total_.weight - cost_);
  return result;
}

double Replicates::cost() const {
  if (total_.noise.empty()) return 1;
  const double off = 1 / total_.weight, length = dot(total_.sum, total_.sum) * off * off;
  const double scatter = beyond_rounding(total_.squared - total_.weight * length, total_.squared);
  const double noise = total_.noise_squared - 2 * off * dot(total_.sum, total_.noise) + total_.weight_squares * length;
  return scatter > 0 ? std::max(0.0, noise / scatter) : 1;
}

double Replicates::noise_of(const Sums& of) const {
  const double m = total_.count, w = total_.weight, mean = of.sum / w;
  const double scatter = of.squares - 2 * mean * of.noise + mean * mean * total_.weight_squares;
  return beyond_rounding(scatter, of.squares) / (w * w) * m / (m - 1);
}

double Replicates::scale() const {
  const double between = scatter_.trace_between();
  return between > 0 ? scatter_.variance / effective_count() / between : 0;
}

double Replicates::along(const std::vector<double>& direction) const {
  const double whole = dot(total_.sum, direction) / total_.weight;
  double scatter = 0;
  for (const auto& block : blocks_) {
    const double off = dot(block.sum, direction) - block.weight * whole;
    scatter += off * off / block.weight;
  }
  return scale() * scatter / (static_cast<double>(blocks_.size()) - 1);
}

double Replicates::overlap(const Replicates& other, double trace) const {
  const std::size_t B = blocks_.size(), C = other.blocks_.size();
  std::vector<double> products(B * C);
  in_pieces(reference_.size(), 256, [&](std::size_t first, std::size_t n) {
    const auto mine = centred(first, n), its = other.centred(first, n);
    for (std::size_t k = 0; k < B; ++k)
      for (std::size_t l = 0; l < C; ++l)
        products[k * C + l] += dot(std::span(mine).subspan(k * n, n), std::span(its).subspan(l * n, n));
  });
  double squares = 0;
  for (std::size_t k = 0; k < B; ++k)
    for (std::size_t l = 0; l < C; ++l) {
      const double product = products[k * C + l] / trace;
      squares += product * product / (blocks_[k].weight * other.blocks_[l].weight);
    }
  return scale() * other.scale() * squares / ((static_cast<double>(B) - 1) * (static_cast<double>(C) - 1));
}

SquaredLength Replicates::distance(const std::vector<double>& other, const Replicates* noisy) const {
  auto d = mean();
  xt::adapt(d) -= xt::adapt(other);
  const double observed = dot(d, d), trace = mean_noise();
  MeanNoise noise{trace, scatter_.concentration(), 0, total_.count - 1.0, d.size()};
  if (observed > 0) xt::adapt(d) /= std::sqrt(observed);
  noise.along = observed > 0 ? along(d) : trace * std::sqrt(noise.concentration);
  if (noisy) {
    const double more = noisy->mean_noise(), sum = trace + more;
    const double share = sum > 0 ? trace / sum : 0, other_share = sum > 0 ? more / sum : 0;
    noise.freedom = sum > 0 ? 1 / (share * share / noise.freedom + other_share * other_share / (noisy->total_.count - 1.0)) : 1;
    noise.concentration = share * share * noise.concentration + other_share * other_share * noisy->scatter_.concentration();
    if (sum > 0) noise.concentration += 2 * overlap(*noisy, sum);
    noise.along += noisy->along(d);
    noise.trace = sum;
  }
  return {observed, noise};
}

Interval Replicates::variance_interval(double level) const {
  const auto [low, high] = measurement::variance_interval(scatter_, level);
  return {std::ldexp(low, exponent_), std::ldexp(high, exponent_)};
}

std::vector<double> Replicates::mean() const {
  auto mean = reference_;
  xt::adapt(mean) += xt::adapt(total_.sum) / total_.weight;
  return mean;
}

std::vector<double> Replicates::variances() const {
  auto result = total_.squares;
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = scatter_of(result[i], total_.sum[i], total_.weight) / (total_.weight - cost_);
  return result;
}

Interval Replicates::cosine_interval(double level) const {
  if (!whole_) return {std::nan(""), std::nan("")};
  if (!(variance_ > 0)) return {cosine_, cosine_};
  const double m = total_.count, most = 1 - cosine_ * cosine_;
  const double share = most > rounding ? noise_of(total_.cosine) / most : 1 / m;
  const double t = boost::math::quantile(boost::math::students_t(m - 1), 0.5 + level / 2), k = t * t * share;
  const double half = std::sqrt(k * std::max(0.0, most) + k * k);
  return {(cosine_ - half) / (1 + k), std::min(1.0, (cosine_ + half) / (1 + k))};
}

bool Replicates::without_noise(double resolution) const { return std::sqrt(mean_noise()) <= resolution * 1e-3; }

double Replicates::bias_p_value(double resolution, double doubt) const {
  const double off = std::sqrt(dot(total_.sum, total_.sum)) / total_.weight;
  if (off <= resolution) return 1;
  if (without_noise(resolution)) return off <= doubt;
  return distance(reference_).p_value(doubt);
}

double Replicates::corrected_bias_p_value(double resolution) const {
  if (!whole_) return std::nan("");
  const double m = total_.count, w = total_.weight;
  double smallest = 1;
  for (std::size_t k = 0; k < directions(); ++k) {
    const double mean = total_.along[k].sum / w;
    if (std::abs(mean) <= resolution) continue;
    if (without_noise(resolution)) return 0;
    const double t = std::abs(mean) / std::sqrt(noise_of(total_.along[k]) + total_.along_most / (w * w) * m / (m - 1));
    smallest = std::min(smallest, 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(m - 1), t)));
  }
  return std::min(1.0, smallest * static_cast<double>(std::max<std::size_t>(1, directions())));
}

}  // namespace hardgrad::measurement
