// Base of tasks with a list of examples: splits by group, ids, and sequences as padded arrays.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {

// Splits by group: a keyed hash of the group's name decides, not the order of the examples.

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

// Base of tasks with a list of examples: splits, ids, and sequences as padded arrays.

/// Sequences as rows, padded to the longest.
struct Padded {
  Array<int> values;  ///< [n, most]
  Array<int> length;  ///< [n]
};
/// The sequences `sequence` (a member, or a function) of the examples `id`, padded with Vocabulary::pad.
template <class Example, class F>
Padded padded(const std::vector<std::uint32_t>& id, const std::vector<Example>& examples, F sequence) {
  std::size_t most = 0;
  for (auto i : id) most = std::max(most, std::invoke(sequence, examples[i]).size());
  Padded result{full<int>({id.size(), most}, Vocabulary::pad), zeros<int>({id.size()})};
  for (std::size_t b = 0; b < id.size(); ++b) {
    const std::vector<int>& values = std::invoke(sequence, examples[id[b]]);
    std::copy(values.begin(), values.end(), row_of(result.values, b).begin());
    result.length(b) = static_cast<int>(values.size());
  }
  return result;
}

/// The shares of the splits beside training.
struct SplitShares {
  double heldout, test;

  void declare(Fields& field, const std::string& of_heldout, const std::string& of_test) {
    field(heldout, "heldout", 0, 1, of_heldout).below();
    field(test, "test", 0, 1, of_test).below();
  }
};

/// An example's id is its index in the list.
class Listed : public Task {
 public:
  std::size_t size(Split split) const override { return of(split).size(); }
  std::string provenance() const override { return provenance_; }
  std::vector<std::uint64_t> contents(Split split) const override;

 protected:
  /// UsageError unless the sum of the shares is below 1.
  static void require_shares(const std::string& task, const SplitShares& shares);
  /// Assigns the examples to splits, in a keyed random order; `texts` identify them (Task::contents), whatever their case.
  /// InputError `<provenance>: <none left>` if none is trained on.
  void part(const std::vector<std::string>& texts, const std::vector<Split>& splits, Key order, const std::string& none_left);
  /// The ids of a split's examples, in their order.
  const std::vector<int>& of(Split split) const { return splits_[static_cast<std::size_t>(split)]; }
  std::vector<int>& of(Split split) { return splits_[static_cast<std::size_t>(split)]; }
  /// The ids of the examples at these indices of a split, for Batch::id.
  std::vector<std::uint32_t> ids(Split split, const std::vector<int>& indices) const;
  /// "N train, N heldout, N test"
  std::string counts() const;

  std::string provenance_ = "generated";

 private:
  std::array<std::vector<int>, 3> splits_;
  std::vector<std::uint64_t> contents_;  // by id
};

}  // namespace hardgrad::tasks
