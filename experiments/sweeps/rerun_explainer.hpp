// The reason why a cell would run or not, and the differences between the identities of two cells, in words.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/plan.hpp"

namespace hardgrad::sweeps {

/// "train.steps 400 -> 401", "the estimator's plugin is another build"; empty if they are equal.
std::vector<std::string> identity_differences(const std::string& before, const std::string& now);
/// All of them in one line.
std::string identity_difference(const std::string& before, const std::string& now);

class RerunExplainer {
 public:
  /// `cells`: those of the folder.
  RerunExplainer(const Plan& plan, const SweepFolder& folder, const storage::CellStore& cells)
      : plan_(plan), folder_(folder), cells_(cells) {}
  /// In words: "done: ...", "skip: ...", "run: ...", "run again: ..." or "stale: ..." (the nearest record has another
  /// identity).
  std::string operator()(const Cell& cell);

 private:
  struct Other {
    std::string hash, identity;
  };
  void look_for_others();
  const Plan& plan_;
  SweepFolder folder_;
  const storage::CellStore& cells_;
  std::optional<std::map<std::string, std::vector<Other>>> others_;  ///< of other plans, by task, model, ...
};

}  // namespace hardgrad::sweeps
