// Keyed splits by group.
#include "experiments/tasks/splits.hpp"

#include <map>

#include "core/random/randomness.hpp"

namespace hardgrad::tasks {

std::vector<Split> split_by_group(const std::vector<std::string>& groups, double heldout, double test, Key key) {
  struct Group {
    double place;  // in [0, 1)
    Split split;
  };
  std::map<std::string, Group> by_name;
  std::array<std::size_t, 3> sizes{};
  for (const auto& name : groups) {
    const auto [it, fresh] = by_name.try_emplace(name);
    if (!fresh) continue;
    const double place = static_cast<double>((key / name).value() >> 11) * 0x1.0p-53;
    it->second = {place, place < test ? Split::test : place < test + heldout ? Split::heldout : Split::train};
    ++sizes[static_cast<std::size_t>(it->second.split)];
  }
  const auto fill = [&](Split split, double share) {
    if (share <= 0 || sizes[static_cast<std::size_t>(split)] > 0 || sizes[0] < 2) return;
    Group* lowest = nullptr;
    for (auto& [name, group] : by_name)
      if (group.split == Split::train && (!lowest || group.place < lowest->place)) lowest = &group;
    lowest->split = split;
    --sizes[0];
    ++sizes[static_cast<std::size_t>(split)];
  };
  fill(Split::test, test);
  fill(Split::heldout, heldout);
  std::vector<Split> result;
  result.reserve(groups.size());
  for (const auto& name : groups) result.push_back(by_name.at(name).split);
  return result;
}

std::array<std::vector<int>, 3> members(const std::vector<Split>& splits, Key order) {
  std::array<std::vector<int>, 3> result;
  for (int i : permutation(splits.size(), order)) result[static_cast<std::size_t>(splits[i])].push_back(i);
  return result;
}

}  // namespace hardgrad::tasks
