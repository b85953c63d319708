// Specs of registered names, checked and in canonical spelling.
#include <nlohmann/json.hpp>

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

}  // namespace hardgrad::sweeps
