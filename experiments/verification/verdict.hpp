// The result of a verification.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hardgrad::verification {

struct Check {
  enum class Outcome { passed, failed, skipped };
  std::string what;   ///< for example "exact mean"
  std::string where;  ///< the network, or the task
  Outcome outcome = Outcome::passed;
  std::string detail;  ///< figures, or the reason for failing or skipping
};

struct Verdict {
  std::string noun;  ///< kind of the verified object: "estimator", "model" or "task"
  std::string name;  ///< its spec as given
  std::vector<Check> checks;
  bool unbiased = true;  ///< an estimator's claim with these settings; if false, bias is reported, not judged
  bool passed() const;
  int count(Check::Outcome outcome) const;
};

std::string to_string(Check::Outcome outcome);

/// The result of `check`; if it throws, the exception's message, since a check that throws has failed.
std::string guarded(const std::function<std::string()>& check);

}  // namespace hardgrad::verification
