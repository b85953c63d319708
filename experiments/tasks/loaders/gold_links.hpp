// Files that say by hand which words of sentence pairs translate each other.
#pragma once

#include <string>
#include <vector>

#include "experiments/tasks/links.hpp"

namespace hardgrad::tasks {

/// Words of the two sides of a pair.
struct PairLengths {
  int source, target;
};

/// The links of each pair; none where the file says nothing of it. Two formats, told apart by the first line with a link:
///   Pharaoh   a line for each pair: `0-0 1-2 2?3`, positions from 0; `-` is sure, `?` is possible
///   columns   a line for each link: `sentence source target [S|P]`, numbers from 1, a source or target of 0 being no link
///             (NULL); S, sure, where nothing is said
/// (the shared tasks of Mihalcea & Pedersen 2003 have the latter). InputError where a line is neither, or a number is out of
/// range.
std::vector<GoldLinks> read_gold_links(const std::string& path, const std::vector<PairLengths>& pairs);

}  // namespace hardgrad::tasks
