// Which cells a condition means, and how specs are spelt canonically.
#include <algorithm>

#include "core/estimator/estimator.hpp"
#include "core/support/error.hpp"
#include "experiments/sweeps/config.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad {
namespace {

template <class Entry>
std::string canonical_of(const Spec& spec) {
  const auto& entry = Registry<Entry>::instance().at(spec.name);
  return Settings(entry.name, entry.parameters, spec).canonical();
}

bool glob(const char* pattern, const char* text) {
  if (!*pattern) return !*text;
  if (*pattern == '*') return glob(pattern + 1, text) || (*text && glob(pattern, text + 1));
  return *text && (*pattern == '?' || *pattern == *text) && glob(pattern + 1, text + 1);
}

}  // namespace

bool pattern_matches(const std::string& pattern, const std::string& text) {
  if (glob(pattern.c_str(), text.c_str())) return true;
  return pattern.find('[') == std::string::npos &&
         glob(pattern.c_str(), text.substr(0, text.find('[')).c_str());
}

bool Condition::matches(const AxisValues& values) const {
  return std::all_of(patterns.begin(), patterns.end(), [&](const auto& item) {
    const auto it = values.find(item.first);
    return it != values.end() && std::any_of(item.second.begin(), item.second.end(),
                                             [&](const auto& p) { return pattern_matches(p, it->second); });
  });
}

std::string canonical_spec(const std::string& kind, const std::string& text) {
  const auto spec = Spec::parse(text);
  if (kind == "task") return canonical_of<TaskEntry>(spec);
  if (kind == "model") return canonical_of<ModelEntry>(spec);
  if (kind == "estimator") return canonical_of<EstimatorEntry>(spec);
  throw Bug("there is no registry of " + kind);
}

}  // namespace hardgrad
