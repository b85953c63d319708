#include "experiments/tasks/listed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/random/randomness.hpp"
#include "core/support/error.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {

std::vector<Split> split_by_group(const std::vector<std::string>& groups, double heldout, double test, Key key) {
  struct Group {
    double place = 0;  // in [0, 1)
    std::size_t size = 0;
    Split split = Split::train;
  };
  std::map<std::string, Group> by_name;
  for (const auto& name : groups) ++by_name[name].size;
  const auto fits = [&](const Group& group, double share) {
    return static_cast<double>(group.size) <= std::max(1.0, share * static_cast<double>(groups.size()));
  };
  std::array<std::size_t, 3> sizes{};
  for (auto& [name, group] : by_name) {
    group.place = static_cast<double>((key / name).value() >> 11) * 0x1.0p-53;
    const auto wanted = group.place < test ? Split::test : group.place < test + heldout ? Split::heldout : Split::train;
    if (wanted != Split::train && fits(group, wanted == Split::test ? test : heldout)) group.split = wanted;
    ++sizes[static_cast<std::size_t>(group.split)];
  }
  const auto fill = [&](Split split, double share) {
    if (share <= 0 || sizes[static_cast<std::size_t>(split)] > 0 || sizes[0] < 2) return;
    Group* lowest = nullptr;
    const auto before = [&](const Group& group) {
      return std::pair(!fits(group, share), group.place) < std::pair(!fits(*lowest, share), lowest->place);
    };
    for (auto& [name, group] : by_name)
      if (group.split == Split::train && (!lowest || before(group))) lowest = &group;
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

std::vector<std::string> groups_by_either(const Sides& first, const Sides& second) {
  // Union-find over the pairs: each points to another of its group, the leader to itself.
  std::vector<std::size_t> leader(first.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](std::size_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  std::unordered_map<std::string_view, std::size_t> seen;
  for (const auto* side : {&first, &second})
    for (std::size_t i = 0; i < side->size(); ++i) {
      const auto [it, fresh] = seen.try_emplace((*side)[i], i);
      if (!fresh) leader[find(i)] = find(it->second);
    }
  auto least = first;  // at a leader: the least of its group
  for (std::size_t i = 0; i < first.size(); ++i) least[find(i)] = std::min(least[find(i)], first[i]);
  std::vector<std::string> groups;
  groups.reserve(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) groups.push_back(least[find(i)]);
  return groups;
}

std::string overlap(const Sides& first, const Sides& second, const std::vector<std::string>& groups,
                    const std::vector<Split>& splits) {
  std::unordered_set<std::string_view> trained;
  std::unordered_map<std::string_view, std::size_t> sizes;
  std::size_t largest = 0, apart = 0, shared = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    largest = std::max(largest, ++sizes[groups[i]]);
    if (splits[i] == Split::train) trained.insert({first[i], second[i]});
  }
  for (std::size_t i = 0; i < splits.size(); ++i)
    if (splits[i] != Split::train) {
      ++apart;
      shared += trained.contains(first[i]) || trained.contains(second[i]);
    }
  return fmt::format("{} of the {} held out or to test share a side with training; largest group that is kept together: {}",
                     shared, apart, largest);
}

std::array<std::vector<int>, 3> members(const std::vector<Split>& splits, Key order) {
  std::array<std::vector<int>, 3> result;
  for (int i : permutation(splits.size(), order)) result[static_cast<std::size_t>(splits[i])].push_back(i);
  return result;
}

void Listed::require_shares(const std::string& task, const SplitShares& shares) {
  if (shares.heldout + shares.test >= 1) throw UsageError(task + ": heldout and test together must be below 1");
}

void Listed::part(const std::vector<std::string>& texts, const std::vector<Split>& splits, Key order,
                  const std::string& none_left) {
  if (texts.size() != splits.size()) throw Bug("an example has no text");
  for (const auto& text : texts) contents_.push_back((Key() / lower_case(text)).value());
  splits_ = members(splits, order);
  if (of(Split::train).empty()) throw InputError(provenance_ + ": " + none_left);
}

std::vector<std::uint64_t> Listed::contents(Split split) const {
  std::vector<std::uint64_t> found;
  for (int i : of(split)) found.push_back(contents_[static_cast<std::size_t>(i)]);
  return found;
}

std::vector<std::uint32_t> Listed::ids(Split split, const std::vector<int>& indices) const {
  std::vector<std::uint32_t> ids;
  ids.reserve(indices.size());
  for (int i : indices) ids.push_back(static_cast<std::uint32_t>(of(split).at(static_cast<std::size_t>(i))));
  return ids;
}

std::string Listed::counts() const {
  return fmt::format("{} train, {} heldout, {} test", size(Split::train), size(Split::heldout), size(Split::test));
}

}  // namespace hardgrad::tasks
