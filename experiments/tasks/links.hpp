// Which words of a sentence are translated by which: links, and how far two sets of them differ.
#pragma once

#include <set>
#include <utility>
#include <vector>

namespace hardgrad::tasks {

/// A word's position in the source and its translation's in the target, from 0.
using Link = std::pair<int, int>;

/// What people agreed on, and what some of them saw (Och & Ney 2003, sec. 6). What is sure is possible, too.
struct GoldLinks {
  std::set<Link> sure, possible;
  bool empty() const { return possible.empty(); }
  void add(Link link, bool is_sure) {
    possible.insert(link);
    if (is_sure) sure.insert(link);
  }
};

/// What the alignment error rate is made of: 1 - (|A and S| + |A and P|) / (|A| + |S|), summed over sentences.
struct AlignmentErrors {
  double wrong = 0;  ///< |A| + |S| - |A and S| - |A and P|
  double all = 0;    ///< |A| + |S|
};
AlignmentErrors alignment_errors(const std::set<Link>& found, const GoldLinks& gold);

}  // namespace hardgrad::tasks
