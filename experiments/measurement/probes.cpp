#include "experiments/measurement/probes.hpp"

#include <algorithm>
#include <cmath>

#include "core/random/randomness.hpp"

namespace hardgrad::measurement {

Probes::Probes(std::size_t size, int count, Key key) : length_(std::min<std::size_t>(size, count)) {
  if (length_.empty()) return;
  sign_.resize(size);
  const std::size_t K = length_.size();
  stride_ = (64 + K - 1) / K * K;
  KeyedRandomness random(key);
  for (std::size_t i = 0; i < sign_.size(); ++i)
    sign_[i] = random.uniform({.index = static_cast<std::uint32_t>(i)}) < 0.5 ? -1 : 1;
  for (std::size_t k = 0; k < length_.size(); ++k) {
    const auto numbers = (size - k + K - 1) / K;  // entries of direction k
    length_[k] = std::sqrt(static_cast<double>(numbers));
  }
}

std::vector<double> Probes::operator()(std::span<const double> d) const {
  std::vector<double> lanes(stride_), along(length_.size());
  if (along.empty()) return along;
  double* __restrict to = lanes.data();
  for (std::size_t first = 0; first < d.size(); first += stride_) {
    const std::size_t n = std::min(stride_, d.size() - first);
    const double *s = sign_.data() + first, *x = d.data() + first;
    for (std::size_t j = 0; j < n; ++j) to[j] += s[j] * x[j];
  }
  for (std::size_t j = 0; j < stride_; ++j) along[j % along.size()] += lanes[j];
  for (std::size_t k = 0; k < along.size(); ++k) along[k] /= length_[k];
  return along;
}

}  // namespace hardgrad::measurement
