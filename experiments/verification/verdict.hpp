// What a verification found.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hardgrad::verification {

struct Check {
  enum class Outcome { passed, failed, skipped };
  std::string what;   ///< e.g. "exact mean"
  std::string where;  ///< the network, or the task
  Outcome outcome = Outcome::passed;
  std::string detail;  ///< figures, or why it failed or was skipped
};

struct Verdict {
  std::string noun;  ///< what was verified: "estimator", "model" or "task"
  std::string name;  ///< its spec as given
  std::vector<Check> checks;
  bool unbiased = true;  ///< an estimator, as it claims with these settings: otherwise bias is reported, not judged
  bool passed() const;
  int count(Check::Outcome outcome) const;
};

std::string to_string(Check::Outcome outcome);

/// What `check` says; where it throws, what the exception says: a check that cannot be made has failed.
std::string guarded(const std::function<std::string()>& check);

}  // namespace hardgrad::verification
