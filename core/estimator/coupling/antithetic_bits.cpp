#include "core/estimator/coupling/antithetic_bits.hpp"

#include <algorithm>

#include "core/kernels/pairs.hpp"

namespace hardgrad {

void disarm_gradient(std::span<const double> p, std::span<const int> b, std::span<const int> other_b, std::span<const double> f,
                     std::span<const double> other_f, std::span<double> logits) {
  constexpr std::size_t block = 128;
  double of_zero[block], of_one[block];
  for (std::size_t from = 0; from < b.size(); from += block) {
    const std::size_t n = std::min(block, b.size() - from);
    kernels::split_pairs(&p[2 * from], n, of_zero, of_one);
    for (std::size_t i = 0, d = from; i < n; ++i, ++d) {
      const double larger = of_one[i] > of_zero[i] ? of_one[i] : of_zero[i];  // sig(|phi|)
      of_one[i] = (f[d] - other_f[d]) * (b[d] - other_b[d]) * larger / 2;
      of_zero[i] = -of_one[i];
    }
    kernels::join_pairs(of_zero, of_one, n, &logits[2 * from]);
  }
}

}  // namespace hardgrad
