// Splits by group: a keyed hash of the group's name decides, not the order of the examples.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

/// The split of every example. Examples of a group (the same source sentence, the same story) are in the same split, which
/// depends only on the group's name and the key, with two exceptions. A group larger than the wanted size of its split stays in
/// training. If a split with a positive share would be empty and training has two or more groups, it takes the group with the
/// lowest hash from training, preferably one that is not too large.
std::vector<Split> split_by_group(const std::vector<std::string>& groups, double heldout, double test, Key key);

/// The name of every pair's group, for split_by_group. Groups are the connected components of pairs that share a sentence on
/// either side, so no held-out sentence is in training. The name is the least first side in the group.
using Sides = std::vector<std::string>;
std::vector<std::string> groups_by_either(const Sides& first, const Sides& second);

/// The share of the training file for a split: 0 if it has a `file` of its own.
inline double share_without(const std::string& file, double share) { return file.empty() ? share : 0; }

/// A text with the number of held-out and test pairs that share a side with training, and the largest group.
std::string overlap(const Sides& first, const Sides& second, const std::vector<std::string>& groups,
                    const std::vector<Split>& splits);

/// Example numbers of each split, in a keyed random order. Files are often sorted (Tatoeba by length), but the first examples
/// of a split must represent it where only some are evaluated or measured.
std::array<std::vector<int>, 3> members(const std::vector<Split>& splits, Key order);

}  // namespace hardgrad::tasks
