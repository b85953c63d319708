// A task whose examples stand in a list: which of them are in which split, and their sequences as padded arrays.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

/// Sequences one under the other, as long as the longest.
struct Padded {
  Array<int> values;  ///< [n, most]
  Array<int> length;  ///< [n]
};
/// sequence(id) of each, padded with `pad`.
template <class F>
Padded padded(const std::vector<std::uint32_t>& id, F sequence, int pad) {
  std::size_t most = 0;
  for (auto i : id) most = std::max(most, std::span<const int>(sequence(i)).size());
  Padded result{Array<int>({id.size(), most}, pad), Array<int>({id.size()})};
  for (std::size_t b = 0; b < id.size(); ++b) {
    const std::span<const int> values(sequence(id[b]));
    std::copy(values.begin(), values.end(), result.values.row(b).begin());
    result.length.data[b] = static_cast<int>(values.size());
  }
  return result;
}

/// Examples are known by their numbers in the list, which are their ids.
class Listed : public Task {
 public:
  std::size_t size(Split split) const override { return of(split).size(); }
  std::string provenance() const override { return provenance_; }

 protected:
  /// Settings `heldout` and `test` are shares of the examples: UsageError if nothing is left to train on.
  static void require_shares(const std::string& task, const Settings& settings);
  /// Parts the examples once and for all, in a keyed random order. InputError `<provenance>: <none left>` if none is trained
  /// on.
  void part(const std::vector<Split>& splits, Key order, const std::string& none_left);
  /// The numbers of a split's examples, in their order.
  const std::vector<int>& of(Split split) const { return splits_[static_cast<std::size_t>(split)]; }
  std::vector<int>& of(Split split) { return splits_[static_cast<std::size_t>(split)]; }
  /// Those of the examples at these indices: Batch::id.
  std::vector<std::uint32_t> ids(Split split, const std::vector<int>& indices) const;
  /// "so many train, so many heldout, so many test"
  std::string counts() const;

  std::string provenance_ = "generated";

 private:
  std::array<std::vector<int>, 3> splits_;
};

}  // namespace hardgrad::tasks
