// hardgrad describe NAME: everything a plugin declares, or (`describe sweep`) every setting of a sweep's
// file.
#include "experiments/cli/describe.hpp"

#include <fmt/format.h>

#include <memory>

#include "core/support/error.hpp"
#include "experiments/cli/common.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/sweeps/settings_table.hpp"

namespace hardgrad::cli {
namespace {

// What an estimator says to each kind of network, by its defaults.
std::vector<std::pair<std::string, std::string>> support(const EstimatorEntry& entry) {
  std::vector<std::pair<std::string, std::string>> result;
  const auto ask = [&](const std::string& name, Structure s) {
    s.posterior = entry.posterior;
    s.labels = 2;  // judged by a label
    result.emplace_back(name, unsupported(Spec::parse(entry.name), s));
  };
  ask("one choice", {.steps = 1, .options = 4, .dependence = Dependence::one_choice, .state_width = 4});
  ask("factorised", {.steps = 3, .options = 4, .dependence = Dependence::factorised, .state_width = 4});
  ask("sequential", {.steps = 3, .options = 4, .dependence = Dependence::sequential, .state_width = 4});
  ask("binary, factorised",
      {.steps = 3, .options = 2, .dependence = Dependence::factorised, .state_width = 4});
  ask("no choice", {.dependence = Dependence::deterministic});
  return result;
}

void print_parameters(const std::vector<ParameterInfo>& parameters) {
  if (parameters.empty()) {
    fmt::print("\nIt takes no parameters.\n");
    return;
  }
  fmt::print("\n");
  std::vector<std::vector<std::string>> rows{{"PARAMETER", "TYPE", "DEFAULT", "RANGE", ""}};
  for (const auto& p : parameters)
    rows.push_back({p.name, p.type_name(), to_string(p.fallback), p.range(), p.help});
  print_table(rows, "");
}

void print(const EstimatorEntry& e) {
  fmt::print("{}: an estimator. {}\n\n", e.name, e.summary);
  fmt::print("paper     {}\ntarget    {}{}\nrows      {} an example\n", e.paper, to_string(e.target),
             e.unbiased ? ", unbiased" : ", biased", e.evaluations);
  std::string works;
  for (const auto& [name, reason] : support(e)) {
    if (reason.empty()) works += (works.empty() ? "" : "; ") + name;
  }
  fmt::print("works on  {}\n", works);
  for (const auto& [name, reason] : support(e))
    if (!reason.empty()) fmt::print("not on    {}: {}\n", name, reason);
  if (e.posterior) fmt::print("needs     a network that has a learned posterior (built for it by itself)\n");
  print_parameters(e.parameters);
}
void print(const ModelEntry& e) {
  fmt::print("{}: a model. {}\n\n", e.name, e.summary);
  fmt::print("paper       {}\nchoices     {}\ndependence  {}\n", e.paper, e.kinds, e.dependence);
  if (!e.needs.empty()) fmt::print("needs       {} of its task\n", fmt::join(e.needs, ", "));
  print_parameters(e.parameters);
}
void print(const TaskEntry& e) {
  fmt::print("{}: a task. {}\n\ndata           {}\ndefault model  {}\n", e.name, e.summary, e.data,
             e.default_model);
  print_parameters(e.parameters);
}

nlohmann::json sweep_json() {
  auto list = nlohmann::json::array();
  for (const auto& s : settings_table())
    list.push_back({{"name", s.path},
                    {"type", s.info.type_name()},
                    {"default", to_json(s.info.fallback)},
                    {"range", s.info.range()},
                    {"help", s.info.help}});
  return {{"name", "sweep"}, {"kind", "sweep"}, {"parameters", list}};
}

void print_sweep() {
  fmt::print(R"(A sweep's file (TOML):

name = "example"           by default the file's name
seed = 1                   root of all random streams
out = "results/example-run"
precision = "float"        or "double"

[grid]                     all combinations of these; a value or a list
task = ["translation", "qa"]
model = "translator"       by default each task's own
estimator = ["rloo[samples=4]", "exact"]
seed = [1, 2, 3]
train.learning_rate = [0.1, 0.01]    any setting below may be walked

[[zip]]                    lists walked together, instead of [grid]
[[exclude]]                combinations left out: all keys must match; * and ? are wildcards
[[override]]               when = {{ task = "qa" }}, set = {{ train.steps = 500 }}

[train] and [measure] hold these settings; --set SECTION.NAME=VALUE overrides them:

)");
  std::vector<std::vector<std::string>> rows{{"SETTING", "TYPE", "DEFAULT", "RANGE", ""}};
  for (const auto& s : settings_table())
    rows.push_back({s.path, s.info.type_name(), to_string(s.info.fallback), s.info.range(), s.info.help});
  print_table(rows, "");
}

// Looks in one registry; `kind:name` narrows the search.
template <class Entry>
bool describe(const std::string& kind, const std::string& name, bool json, nlohmann::json& found,
              bool first) {
  if (!kind.empty() && kind != Entry::noun) return false;
  const auto& entries = Registry<Entry>::instance().entries();
  const auto it = entries.find(name);
  if (it == entries.end()) return false;
  if (!json && !first) fmt::print("\n");
  if (!json) print(it->second);
  found.push_back(entry_json(it->second));
  return true;
}

int describe_all(const std::string& text, bool json) {
  const auto colon = text.find(':');
  const auto kind = colon == std::string::npos ? "" : text.substr(0, colon);
  // A whole spec may be given: the name counts.
  const auto name = Spec::parse(colon == std::string::npos ? text : text.substr(colon + 1)).name;
  if (name == "sweep" && kind.empty()) {
    json ? print_json(sweep_json()) : print_sweep();
    return 0;
  }
  auto found = nlohmann::json::array();
  bool any = describe<EstimatorEntry>(kind, name, json, found, true);
  any |= describe<ModelEntry>(kind, name, json, found, !any);
  any |= describe<TaskEntry>(kind, name, json, found, !any);
  if (!any) {
    std::vector<std::string> names{"sweep"};
    for (const auto& more :
         {Estimators::instance().names(), Models::instance().names(), Tasks::instance().names()})
      for (const auto& n : more)
        if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
    throw UsageError(
        fmt::format("describe: there is nothing named \"{}\"{}", text, did_you_mean(name, names)));
  }
  if (json) print_json(found.size() == 1 ? found[0] : found);
  return 0;
}

}  // namespace

nlohmann::json entry_json(const EstimatorEntry& e) {
  auto supports = nlohmann::json::object();
  for (const auto& [name, reason] : support(e))
    supports[name] = reason.empty() ? nlohmann::json(true) : nlohmann::json(reason);
  return {{"kind", "estimator"},           {"name", e.name},
          {"summary", e.summary},          {"paper", e.paper},
          {"target", to_string(e.target)}, {"unbiased", e.unbiased},
          {"evaluations", e.evaluations},  {"posterior", e.posterior},
          {"supports", supports},          {"parameters", to_json(e.parameters)}};
}
nlohmann::json entry_json(const ModelEntry& e) {
  return {{"kind", "model"},
          {"name", e.name},
          {"summary", e.summary},
          {"paper", e.paper},
          {"dependence", e.dependence},
          {"kinds", e.kinds},
          {"needs", e.needs},
          {"parameters", to_json(e.parameters)}};
}
nlohmann::json entry_json(const TaskEntry& e) {
  return {{"kind", "task"},
          {"name", e.name},
          {"summary", e.summary},
          {"data", e.data},
          {"default_model", e.default_model},
          {"parameters", to_json(e.parameters)}};
}

void add_describe(CLI::App& app, Action& action) {
  struct Options {
    std::string name;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto* sub = app.add_subcommand("describe",
                                 "one estimator, model or task in full; `describe sweep` for a sweep's file");
  sub->add_option("name", options->name, "a name; model:bits or task:bits where two share it")->required();
  sub->add_flag("--json", options->json,
                "print JSON: an object, or a list of them where several share the name");
  sub->callback(
      [options, &action] { action = [options] { return describe_all(options->name, options->json); }; });
}

}  // namespace hardgrad::cli
