// Who is trained on and who is held out: decided per group by a keyed hash of its name, never by order.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

/// The split of every example; examples of the same group (the same source sentence, the same story) are
/// never parted. A group's split depends on its name and the key alone, except that a split with a positive
/// share takes the group with the lowest hash from training if it would stay empty and training has two
/// groups or more.
std::vector<Split> split_by_group(const std::vector<std::string>& groups, double heldout, double test, Key key);

/// Example numbers of each split, in a keyed random order: files are often sorted (Tatoeba by length), and the first
/// examples of a split must stand for all of it wherever only so many are evaluated or measured.
std::array<std::vector<int>, 3> members(const std::vector<Split>& splits, Key order);

}  // namespace hardgrad::tasks
