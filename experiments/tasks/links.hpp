// Links between the words of a sentence and of its translation, and the alignment error between two sets of links.
#pragma once

#include <set>
#include <utility>
#include <vector>

namespace hardgrad::tasks {

/// The positions of a source word and of a target word that translates it, from 0.
using Link = std::pair<int, int>;

/// Sure and possible links of annotators (Och & Ney 2003, sec. 6). Sure links are also possible.
struct GoldLinks {
  std::set<Link> sure, possible;
  bool empty() const { return possible.empty(); }
  void add(Link link, bool is_sure) {
    possible.insert(link);
    if (is_sure) sure.insert(link);
  }
};

/// Numerator and denominator of the alignment error rate 1 - (|A and S| + |A and P|) / (|A| + |S|), summed over sentences.
struct AlignmentErrors {
  double wrong = 0;  ///< |A| + |S| - |A and S| - |A and P|
  double all = 0;    ///< |A| + |S|
};
inline AlignmentErrors alignment_errors(const std::set<Link>& found, const GoldLinks& gold) {
  const auto all = static_cast<double>(found.size() + gold.sure.size());
  double right = 0;
  for (const auto& link : found) right += static_cast<double>(gold.sure.count(link) + gold.possible.count(link));
  return {all - right, all};
}

}  // namespace hardgrad::tasks
