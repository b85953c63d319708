// Specs of tasks, models and estimators, and the patterns that match them.
#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/estimator/estimator.hpp"
#include "core/support/error.hpp"
#include "experiments/sweeps/config.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::sweeps {
namespace {

template <class Entry>
Settings settings_of(const Spec& spec) {
  const auto& entry = Registry<Entry>::instance().at(spec.name);
  return Settings(entry.name, entry.parameters, spec);
}

Settings settings_of(const std::string& kind, const std::string& text) {
  const auto spec = Spec::parse(text);
  if (kind == "target") return target_of(spec).settings();
  if (kind == "task") return settings_of<tasks::TaskEntry>(spec);
  if (kind == "model") return settings_of<ModelEntry>(spec);
  if (kind == "estimator") return hardgrad::settings_of(Estimators::instance().at(spec.name), spec);
  throw Bug("there is no registry of " + kind);
}

}  // namespace

std::string canonical_spec(const std::string& kind, const std::string& text) { return settings_of(kind, text).canonical(); }

std::string settings_json(const std::string& kind, const std::string& text) {
  auto json = nlohmann::json::object();
  const auto settings = settings_of(kind, text);
  for (const auto& [name, value] : settings.values())
    json[name] = std::visit([](const auto& v) { return nlohmann::json(v); }, value);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // a text may contain any bytes
}

std::string identity_lines(const std::string& kind, const std::string& text) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::string> known;  // many cells have the same specs
  std::lock_guard guard(mutex);
  auto [it, added] = known.try_emplace({kind, text});
  auto& lines = it->second;
  if (!added) return lines;
  const auto spec = Spec::parse(text);
  const auto values = settings_of(kind, text).values();
  const auto add = [&](const std::string& owner, const auto& entry, const auto& of) {
    lines += hardgrad::identity_lines(owner + ".", entry.parameters, of);
  };
  if (kind == "task") add(kind, tasks::Tasks::instance().at(spec.name), values);
  if (kind == "model") add(kind, Models::instance().at(spec.name), values);
  if (kind == "estimator") {
    add(kind, Estimators::instance().at(spec.name), values);
    const auto target = target_of(spec);
    add("target", target.entry(), target.settings().values());
  }
  return lines;
}

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
