// Base of tasks with a list of examples: splits, ids, and sequences as padded arrays.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/tasks/task.hpp"
#include "experiments/tasks/vocabulary.hpp"

namespace hardgrad::tasks {

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
