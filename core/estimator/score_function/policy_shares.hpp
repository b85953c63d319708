// The weight of a sampled sequence, by which its choices are aggregated to one objective.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace hardgrad {

/// [B K] of samples with n [B K] choices, of at most `longest`: sum 1, sequences 1 / n_k, tokens K / sum_j n_j of the example,
/// longest 1 / longest.
inline std::vector<double> sample_shares(std::string_view aggregation, const std::vector<double>& n, std::size_t K,
                                         double longest) {
  std::vector<double> c(n.size(), aggregation == "longest" ? 1 / longest : 1);
  for (std::size_t group = 0; group < n.size(); group += K) {
    double words = 0;
    for (std::size_t r = group; r < group + K; ++r) words += n[r];
    for (std::size_t r = group; r < group + K; ++r)
      if (aggregation == "sequences")
        c[r] = 1 / n[r];
      else if (aggregation == "tokens")
        c[r] = static_cast<double>(K) / words;
  }
  return c;
}

}  // namespace hardgrad
