#include "experiments/cli/candidates.hpp"

#include <set>

#include "core/estimator/estimator.hpp"
#include "core/models/model.hpp"
#include "experiments/sweeps/settings_table.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::cli {
namespace {

using Words = std::vector<std::string>;

Words values_of(const ParameterInfo& info) {
  if (info.type == ParameterInfo::Type::boolean) return {"true", "false"};
  if (info.type == ParameterInfo::Type::choice) return info.choices;
  const auto fallback = to_string(info.fallback);
  return fallback.empty() ? Words{} : Words{fallback};
}

// A name, or, within `name[`, the parameters not given yet and their values.
template <class Entry>
void add_specs(const std::string& text, Words& candidates) {
  const auto& entries = Registry<Entry>::instance().entries();
  const auto bracket = text.find('[');
  if (bracket == std::string::npos) {
    for (const auto& [name, entry] : entries) {
      candidates.push_back(name);
      if (name == text && !entry.parameters.empty()) candidates.push_back(name + "[");
    }
    return;
  }
  const auto entry = entries.find(text.substr(0, bracket));
  if (entry == entries.end()) return;
  std::set<std::string> given;
  std::size_t start = bracket + 1;
  for (auto comma = text.find(',', start); comma != std::string::npos; comma = text.find(',', start)) {
    const auto part = text.substr(start, comma - start);
    given.insert(part.substr(0, part.find('=')));
    start = comma + 1;
  }
  const auto before = text.substr(0, start), part = text.substr(start);
  const auto equals = part.find('=');
  for (const auto& parameter : entry->second.parameters) {
    if (equals == std::string::npos) {
      if (!given.contains(parameter.name)) candidates.push_back(before + parameter.name + "=");
    } else if (parameter.name == part.substr(0, equals)) {
      for (const auto& value : values_of(parameter)) {
        const auto whole = before + parameter.name + "=" + value;
        candidates.push_back(whole);
        if (whole != text) continue;
        if (given.size() + 1 < entry->second.parameters.size()) candidates.push_back(whole + ",");
        candidates.push_back(whole + "]");
      }
    }
  }
}

// `prefix` and a setting, or its values after '='.
void add_settings(const std::string& prefix, const std::string& text, Words& candidates) {
  for (const auto& setting : sweeps::settings_table()) {
    const auto start = prefix + setting.path + "=";
    if (text.starts_with(start))
      for (const auto& value : values_of(setting.info)) candidates.push_back(start + value);
    else
      candidates.push_back(start);
  }
}

void add_specs_behind(const std::string& key, const std::string& text, Words& candidates) {
  Words specs;
  const auto value = text.substr(key.size());
  if (key.ends_with("task=")) add_specs<tasks::TaskEntry>(value, specs);
  if (key.ends_with("model=")) add_specs<ModelEntry>(value, specs);
  if (key.ends_with("estimator=")) add_specs<EstimatorEntry>(value, specs);
  for (const auto& spec : specs) candidates.push_back(key + spec);
}

// --set: any setting of the file; --only: axes.
void add_assignments(const std::string& text, bool set, Words& candidates) {
  const std::string prefix = set ? "grid." : "";
  for (const char* axis : {"task", "model", "estimator", "seed"}) {
    const auto key = prefix + axis + "=";
    if (text.starts_with(key))
      add_specs_behind(key, text, candidates);
    else
      candidates.push_back(key);
  }
  add_settings("", text, candidates);
  if (!set) return;
  add_settings("grid.", text, candidates);
  for (const char* key : {"name=", "seed=", "out="}) candidates.push_back(key);
  for (const auto& row : precisions) candidates.push_back(std::string("precision=") + row.name);
}

template <class Entry>
Words specs_of(const std::string& text) {
  Words candidates;
  add_specs<Entry>(text, candidates);
  return candidates;
}

Words assignments(const std::string& text, bool set) {
  Words candidates;
  add_assignments(text, set, candidates);
  return candidates;
}

}  // namespace

Words estimator_specs(const std::string& text) { return specs_of<EstimatorEntry>(text); }
Words model_specs(const std::string& text) { return specs_of<ModelEntry>(text); }
Words task_specs(const std::string& text) { return specs_of<tasks::TaskEntry>(text); }

Words specs(const std::string& text) {
  Words candidates;
  add_specs<EstimatorEntry>(text, candidates);
  add_specs<ModelEntry>(text, candidates);
  add_specs<tasks::TaskEntry>(text, candidates);
  return candidates;
}

Words sweep_settings(const std::string& text) { return assignments(text, true); }
Words axis_patterns(const std::string& text) { return assignments(text, false); }

}  // namespace hardgrad::cli
