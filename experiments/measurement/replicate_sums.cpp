#include "experiments/measurement/replicate_sums.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/random/randomness.hpp"
#include "core/support/array.hpp"
#include "experiments/measurement/lengths.hpp"

namespace hardgrad::measurement {

Probes::Probes(std::size_t size, int count, Key key) : length_(std::min<std::size_t>(size, count)) {
  if (length_.empty()) return;
  sign_.resize(size);
  const std::size_t K = length_.size();
  lanes_ = (64 + K - 1) / K * K;
  KeyedRandomness random(key);
  for (std::size_t i = 0; i < sign_.size(); ++i)
    sign_[i] = random.uniform({.index = static_cast<std::uint32_t>(i)}) < 0.5 ? -1 : 1;
  for (std::size_t k = 0; k < length_.size(); ++k) {
    const auto numbers = (size - k + K - 1) / K;  // entries of direction k
    length_[k] = std::sqrt(static_cast<double>(numbers));
  }
}

void Probes::add(std::size_t first, std::span<const double> d, std::span<double> sums) const {
  if (lanes_ == 0) return;
  double* __restrict to = sums.data();
  for (std::size_t from = 0; from < d.size(); from += lanes_) {
    const std::size_t n = std::min(lanes_, d.size() - from);
    const std::int8_t* s = sign_.data() + first + from;
    const double* x = d.data() + from;
    for (std::size_t j = 0; j < n; ++j) to[j] += s[j] * x[j];
  }
}

std::vector<double> Probes::along(std::span<const double> sums) const {
  std::vector<double> along(length_.size());
  for (std::size_t j = 0; j < lanes_; ++j) along[j % along.size()] += sums[j];
  for (std::size_t k = 0; k < along.size(); ++k) along[k] /= length_[k];
  return along;
}

ReplicateSums::ReplicateSums(std::vector<double> reference, int directions, int replicates, int most_blocks,
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

std::array<int, 2> ReplicateSums::range(int block) const {
  const auto at = [&](int b) { return static_cast<int>(static_cast<long long>(replicates_) * b / blocks()); };
  return {at(block), at(block + 1)};
}

void ReplicateSums::ReplicateBlock::add_vectors(const ReplicateBlock& other) {
  const auto join = [](std::vector<double>& into, const std::vector<double>& more) {
    if (into.empty()) into.resize(more.size());
    add_in_place(into, xt::adapt(more));
  };
  if (noise.empty() && !other.noise.empty()) noise = sum;  // all weights so far are 1
  if (!noise.empty()) join(noise, other.noise_sum());
  join(sum, other.sum);
}

/// All weights of the block so far are 1.
void ReplicateSums::begin_weights(ReplicateBlock& block) const {
  block.noise = block.sum;
  block.noise_squared = xt::sum(xt::adapt(block.squares))();
  block.noise_squared_in = in_parts(block.squares);
}

std::vector<double> ReplicateSums::in_parts(const std::vector<double>& numbers) const {
  std::vector<double> sums;
  for (const auto& [first, last] : parts_) sums.push_back(xt::sum(xt::view(xt::adapt(numbers), xt::range(first, last)))());
  return sums;
}

void ReplicateSums::add(int index, std::span<const double> gradient, double weight) {
  auto& block = blocks_[index];
  if (block.sum.empty()) {
    block.sum.resize(reference_.size());
    {
      const std::lock_guard lock(*summing_);
      block.squares = std::exchange(recycled_, {});  // fresh pages take as long as a replicate
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

void ReplicateSums::keep(std::vector<double>& largest, double squared) {
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

void ReplicateSums::grow() {
  auto before = std::move(blocks_);
  const int filled = replicates_;
  replicates_ *= 2;
  blocks_ = std::vector<ReplicateBlock>(std::min(replicates_, most_blocks_));
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
    add_in_place(to.squared_in, xt::adapt(block.squared_in));
    add_in_place(to.noise_squared_in, xt::adapt(block.noise_squared_in));
    for (double squared : block.largest) keep(to.largest, squared);
  }
  for (summed_ = 0; range(summed_)[0] < filled;) ++summed_;
}

void ReplicateSums::complete(int index) {
  const std::lock_guard lock(*summing_);
  blocks_[index].complete = true;
  for (; summed_ < blocks() && blocks_[summed_].complete; ++summed_) {
    auto& block = blocks_[summed_];
    total_.count += block.count;
    total_.weight += block.weight;
    total_.weight_squares += block.weight_squares;
    total_.cosine.join(block.cosine);
    total_.add_vectors(block);
    add_in_place(total_.squares, xt::adapt(block.squares));
    block.squared = xt::sum(xt::adapt(block.squares))();
    if (block.noise.empty()) block.noise_squared = block.squared;
    total_.squared += block.squared;
    total_.noise_squared += block.noise_squared;
    block.squared_in = in_parts(block.squares);
    if (block.noise.empty()) block.noise_squared_in = block.squared_in;
    add_in_place(total_.squared_in, xt::adapt(block.squared_in));
    add_in_place(total_.noise_squared_in, xt::adapt(block.noise_squared_in));
    for (std::size_t k = 0; k < directions(); ++k) total_.along[k].join(block.along[k]);
    total_.along_most = std::max(total_.along_most, block.along_most);
    recycled_ = std::move(block.squares);
    block.squares = {};
  }
}

void ReplicateSums::end_early() {
  std::erase_if(blocks_, [](const ReplicateBlock& block) { return block.count == 0; });
  replicates_ = 0;
  for (const auto& block : blocks_) replicates_ += block.count;
}

ReplicateSums ReplicateSums::part(std::size_t index) const {
  const auto [first, last] = parts_.at(index);
  const auto slice = [first = first, last = last](const std::vector<double>& all) {
    return std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(first),
                               all.begin() + static_cast<std::ptrdiff_t>(last));
  };
  ReplicateSums of(slice(reference_), 0, replicates_, most_blocks_);
  of.whole_ = false;
  of.blocks_.resize(blocks_.size());
  const auto take = [&](ReplicateBlock& to, const ReplicateBlock& from) {
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
  return of;
}

}  // namespace hardgrad::measurement
