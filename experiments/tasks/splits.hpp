// Who is trained on and who is held out: decided per group by a keyed hash of its name, never by order.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

/// The split of every example; examples of the same group (the same source sentence, the same story) are
/// never parted. A group's split depends on its name and the key alone, except that a group larger than the whole split
/// should be stays in training, and that a split with a positive share takes the group with the lowest hash from training
/// if it would stay empty and training has two groups or more; of those that are not too large, if there are any.
std::vector<Split> split_by_group(const std::vector<std::string>& groups, double heldout, double test, Key key);

/// A name of every pair's group, for split_by_group. Pairs that share a sentence, on whichever side, are in the same group, and
/// so are those that share one with these, and so on (connected components): nothing of what is held out stands in training.
/// The name is the least first side in the group.
using Sides = std::vector<std::string>;
std::vector<std::string> groups_by_either(const Sides& first, const Sides& second);

/// In words: how many pairs that are not trained on share a side with training, and the largest group.
std::string overlap(const Sides& first, const Sides& second, const std::vector<std::string>& groups,
                    const std::vector<Split>& splits);

/// Example numbers of each split, in a keyed random order: files are often sorted (Tatoeba by length), and the first
/// examples of a split must stand for all of it wherever only so many are evaluated or measured.
std::array<std::vector<int>, 3> members(const std::vector<Split>& splits, Key order);

}  // namespace hardgrad::tasks
