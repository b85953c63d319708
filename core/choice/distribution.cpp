#include "core/choice/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/error.hpp"

namespace hardgrad {

EnumeratedSets enumerated_sets(std::size_t asks, std::size_t D, const std::function<double(std::size_t)>& support_size,
                               int step, const Visits& visits) {
  std::vector<double> count(asks * D);
  std::vector<std::size_t> rows(asks);
  double total = 0;
  for (std::size_t r = 0; r < asks; ++r) {
    double sets = 1, most = 1;
    for (std::size_t c = r * D; c < (r + 1) * D; ++c) {
      count[c] = support_size(c);
      sets *= count[c];
      most = std::max(most, count[c]);
    }
    total += visits.side_by_side ? most : sets;
    if (total > visits.cap)
      throw NotExact(fmt::format("choice {} has more than {:.6g} rows to visit: take fewer steps, columns, options or examples",
                                 step + 1, visits.cap));
    rows[r] = static_cast<std::size_t>(visits.side_by_side ? most : sets);
  }
  const auto all = static_cast<std::size_t>(total);
  EnumeratedSets result{std::vector<int>(all), std::vector<int>(all * D), std::vector<char>(visits.side_by_side ? all * D : 0)};
  for (std::size_t r = 0, first = 0; r < asks; first += rows[r++]) {
    std::fill_n(result.parent.begin() + first, rows[r], static_cast<int>(r));
    std::size_t repeats = 1;  // in sets, the last column varies fastest
    for (std::size_t d = D; d-- > 0;) {
      const auto n = static_cast<std::size_t>(count[r * D + d]);
      const auto answer = [&](std::size_t i) -> int& { return result.answer[(first + i) * D + d]; };
      if (visits.side_by_side) {
        for (std::size_t i = 0; i < rows[r]; ++i) {
          answer(i) = static_cast<int>(std::min(i, n - 1));
          result.padding_mask[(first + i) * D + d] = i >= n;
        }
        continue;
      }
      for (std::size_t i = 0; i < rows[r];)
        for (std::size_t a = 0; a < n; ++a)
          for (std::size_t end = i + repeats; i < end; ++i) answer(i) = static_cast<int>(a);
      repeats *= n;
    }
  }
  return result;
}

}  // namespace hardgrad
