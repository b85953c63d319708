// Files of hand-made word alignments of sentence pairs.
#pragma once

#include <string>
#include <vector>

#include "experiments/tasks/links.hpp"

namespace hardgrad::tasks {

/// Numbers of words of a pair.
struct PairLengths {
  int source, target;
};

/// The links of each pair; empty for a pair without links. Two formats, distinguished by the first line with a link:
///   Pharaoh   a line for each pair: `0-0 1-2 2?3`, positions from 0; `-` is sure, `?` is possible
///   columns   a line for each link: `sentence source target [S|P]`, numbers from 1; a source or target of 0 means no link
/// (NULL);             S (sure) is the default. Used by the shared tasks of Mihalcea & Pedersen 2003.
/// InputError if a line has neither format, or a number is out of range.
std::vector<GoldLinks> read_gold_links(const std::string& path, const std::vector<PairLengths>& pairs);

}  // namespace hardgrad::tasks
