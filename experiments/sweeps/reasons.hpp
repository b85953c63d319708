// The reason why a cell would run or not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/plan.hpp"

namespace hardgrad::sweeps {

class Reasons {
 public:
  Reasons(const Plan& plan, const SweepFolder& folder) : plan_(plan), folder_(folder) {}
  /// In words: "done: ...", "skip: ...", "run: ...", "run again: ..." or "stale: ..." (the nearest file has another identity).
  std::string operator()(const Cell& cell);

 private:
  struct Other {
    std::string path, identity;
  };
  void look_for_others();
  const Plan& plan_;
  SweepFolder folder_;
  std::optional<std::map<std::string, std::vector<Other>>> others_;  ///< of other plans, by task, model, ...
};

}  // namespace hardgrad::sweeps
