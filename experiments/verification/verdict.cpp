#include "experiments/verification/verdict.hpp"

#include <algorithm>
#include <exception>

namespace hardgrad::verification {

bool Verdict::passed() const { return count(Check::Outcome::failed) == 0 && count(Check::Outcome::passed) > 0; }
int Verdict::count(Check::Outcome outcome) const {
  return static_cast<int>(std::count_if(checks.begin(), checks.end(), [&](const auto& c) { return c.outcome == outcome; }));
}

std::string to_string(Check::Outcome outcome) {
  switch (outcome) {
    case Check::Outcome::passed: return "passed";
    case Check::Outcome::failed: return "failed";
    case Check::Outcome::skipped: return "skipped";
  }
  return "";
}

std::string guarded(const std::function<std::string()>& check) {
  try {
    return check();
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace hardgrad::verification
