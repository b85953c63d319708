#include "experiments/cli/entries.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "core/estimator/evaluations.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/registry/known_as.hpp"
#include "core/support/error.hpp"

namespace hardgrad::cli {
namespace {

nlohmann::json needs_json(const EstimatorEntry& entry) {
  auto list = nlohmann::json::array();
  for (const auto& need : entry.needs) {
    nlohmann::json one = {{"kind", kind_name(need)}, {"text", to_string(need)}};
    if (need.most) one["most"] = need.most;
    list.push_back(one);
  }
  return list;
}

nlohmann::json parameters_json(const std::vector<ParameterInfo>& parameters) {
  auto list = nlohmann::json::array();
  for (const auto& p : parameters)
    list.push_back({{"name", p.name},
                    {"type", p.type_name()},
                    {"default", to_json(p.fallback)},
                    {"range", p.range()},
                    {"help", p.help},
                    {"absent", p.absent ? to_json(*p.absent) : nlohmann::json()}});
  return list;
}

/// The values of a parameter that may matter: all values of a flag or a choice, the ends of a range of numbers.
std::vector<std::string> telling_values(const ParameterInfo& p) {
  if (p.type == ParameterInfo::Type::boolean) return {"false", "true"};
  if (p.type != ParameterInfo::Type::integer && p.type != ParameterInfo::Type::real) return p.choices;
  std::vector<std::string> ends;
  if (std::isfinite(p.low) && !p.open_low) ends.push_back(fmt::format("{}", p.low));
  if (std::isfinite(p.high) && !p.open_high) ends.push_back(fmt::format("{}", p.high));
  return ends;
}

/// Searches one registry.
template <class Entry>
void look(const std::string& kind, const std::string& name, std::vector<AnyEntry>& found) {
  if (!kind.empty() && kind != Entry::noun) return;
  const auto& entries = Registry<Entry>::instance().entries();
  if (const auto it = entries.find(name); it != entries.end()) found.emplace_back(&it->second);
}

}  // namespace

nlohmann::json to_json(const Value& value) {
  return std::visit([](const auto& v) { return nlohmann::json(v); }, value);
}

std::vector<Support> support(const EstimatorEntry& entry) {
  struct Label final : AnswerSampler {
    Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>&) const override { return batch; }
  };
  static const Label label;
  const auto spec = Spec::parse(entry.name);
  std::vector<Support> result;
  const auto ask = [&](const std::string& name, std::vector<SiteDeclaration> sites) {
    const Structure structure{.sites = std::move(sites), .posterior = wants_posterior(spec), .answer_sampler = &label};
    auto& found = result.emplace_back(name, why_unsupported(spec, structure));
    if (found.reason.empty()) found.rows = stated_rows(spec, structure);
  };
  const auto site = [](int options, int times, DependenceScope scope) {
    return SiteDeclaration{.name = "choice", .options = options, .times = times, .state_width = 4, .scope = scope};
  };
  ask("one choice", {site(4, 1, DependenceScope::own_costs)});
  ask("factorised", {site(4, 3, DependenceScope::own_costs)});
  ask("sequential", {site(4, 3, DependenceScope::later_choices)});
  ask("binary, factorised", {site(2, 3, DependenceScope::own_costs)});
  ask("numbers, sequential", {{.name = "choice",
                               .times = 3,
                               .state_width = 4,
                               .scope = DependenceScope::later_choices,
                               .kind = SiteKind::normal,
                               .columns = 2}});
  ask("one subset", {{.name = "choice",
                      .options = 4,
                      .subset_size = 2,
                      .state_width = 4,
                      .scope = DependenceScope::own_costs,
                      .kind = SiteKind::subsets}});
  ask("no choice", {});
  return result;
}

bool unbiased(const EstimatorEntry& e) { return claims_unbiased(Spec::parse(e.name)); }

std::vector<std::string> decisive_settings(const EstimatorEntry& e) {
  std::vector<std::string> found;
  if (!e.unbiased || !e.biased_by) return found;
  for (const auto& p : e.parameters)
    for (const auto& value : telling_values(p))
      if (auto setting = fmt::format("{}={}", p.name, value);
          claims_unbiased(Spec::parse(fmt::format("{}[{}]", e.name, setting))) != unbiased(e))
        found.push_back(std::move(setting));
  return found;
}

std::vector<AnyEntry> entries_named(const std::string& text, std::vector<std::string> also) {
  const auto colon = text.find(':');
  const auto kind = colon == std::string::npos ? "" : text.substr(0, colon);
  const auto name = Spec::parse(colon == std::string::npos ? text : text.substr(colon + 1)).name;
  std::vector<AnyEntry> entries;
  look<EstimatorEntry>(kind, name, entries);
  look<ModelEntry>(kind, name, entries);
  look<tasks::TaskEntry>(kind, name, entries);
  if (entries.empty()) look<TargetEntry>(kind, name, entries);  // an estimator of the same name takes precedence
  if (const auto* known = entries.empty() ? known_as(name) : nullptr; known && (kind.empty() || kind == EstimatorEntry::noun))
    look<EstimatorEntry>("", known->estimator(), entries);
  if (!entries.empty()) return entries;
  for (const auto& more : {Estimators::instance().names(), Models::instance().names(), tasks::Tasks::instance().names(),
                           Targets::instance().names()})
    for (const auto& n : more)
      if (std::find(also.begin(), also.end(), n) == also.end()) also.push_back(n);
  throw UsageError(fmt::format("describe: there is nothing named \"{}\"{}", text, did_you_mean(name, also)));
}

nlohmann::json names_json(const std::string& estimator) {
  auto list = nlohmann::json::array();
  for (const auto& known : known_names())
    if (estimator.empty() || known.estimator() == estimator)
      list.push_back({{"name", known.name}, {"spec", known.spec}, {"paper", known.paper}, {"reason", known.reason}});
  return list;
}
nlohmann::json presets_json(const EstimatorEntry& e) {
  auto list = nlohmann::json::array();
  for (const auto& [name, settings, paper] : e.presets)
    list.push_back({{"name", name}, {"settings", settings}, {"paper", paper}});
  return list;
}
nlohmann::json entry_json(const EstimatorEntry& e) {
  auto supports = nlohmann::json::object(), rows = nlohmann::json::object();
  for (const auto& found : support(e)) {
    supports[found.network] = found.reason.empty() ? nlohmann::json(true) : nlohmann::json(found.reason);
    if (found.rows) rows[found.network] = *found.rows;
  }
  return {{"kind", "estimator"},
          {"name", e.name},
          {"summary", e.summary},
          {"paper", e.paper},
          {"known_as", names_json(e.name)},
          {"target", e.target},
          {"unbiased", unbiased(e)},
          {"biased_by", unbiased(e) ? decisive_settings(e) : std::vector<std::string>{}},
          {"unbiased_by", unbiased(e) ? std::vector<std::string>{} : decisive_settings(e)},
          {"evaluations", e.evaluations},
          {"rows", rows},
          {"couples_examples", e.couples_examples},
          {"posterior", wants_posterior(Spec::parse(e.name))},
          {"needs", needs_json(e)},
          {"supports", supports},
          {"presets", presets_json(e)},
          {"parameters", parameters_json(e.parameters)}};
}
nlohmann::json entry_json(const ModelEntry& e) {
  return {{"kind", "model"},
          {"name", e.name},
          {"summary", e.summary},
          {"paper", e.paper},
          {"dependence", e.dependence},
          {"kinds", e.kinds},
          {"needs", e.needs},
          {"parameters", parameters_json(e.parameters)}};
}
nlohmann::json entry_json(const TargetEntry& e) {
  return {{"kind", "target"},
          {"name", e.name},
          {"summary", e.summary},
          {"posterior", Target(e.name).terms().drawn_from == DrawnFrom::posterior},
          {"parameters", parameters_json(e.parameters)}};
}
nlohmann::json entry_json(const tasks::TaskEntry& e) {
  return {{"kind", "task"},
          {"name", e.name},
          {"summary", e.summary},
          {"data", e.data},
          {"default_model", e.default_model},
          {"parameters", parameters_json(e.parameters)}};
}

}  // namespace hardgrad::cli
