#include "experiments/measurement/probes.hpp"

#include <algorithm>
#include <cmath>

#include "core/random/randomness.hpp"

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

}  // namespace hardgrad::measurement
