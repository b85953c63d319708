// The cells that match a condition.
#include <algorithm>

#include "experiments/sweeps/config.hpp"

namespace hardgrad::sweeps {
namespace {

bool glob(const char* pattern, const char* text) {
  if (!*pattern) return !*text;
  if (*pattern == '*') return glob(pattern + 1, text) || (*text && glob(pattern, text + 1));
  return *text && (*pattern == '?' || *pattern == *text) && glob(pattern + 1, text + 1);
}

}  // namespace

bool pattern_matches(const std::string& pattern, const std::string& text) {
  if (glob(pattern.c_str(), text.c_str())) return true;
  return pattern.find('[') == std::string::npos && glob(pattern.c_str(), text.substr(0, text.find('[')).c_str());
}

bool Condition::matches(const AxisValues& values) const {
  return std::all_of(patterns.begin(), patterns.end(), [&](const auto& item) {
    const auto it = values.find(item.first);
    return it != values.end() &&
           std::any_of(item.second.begin(), item.second.end(), [&](const auto& p) { return pattern_matches(p, it->second); });
  });
}

}  // namespace hardgrad::sweeps
