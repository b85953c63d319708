// hardgrad describe NAME: everything a plugin declares, or (`describe sweep`) every setting of a sweep's
// file.
#include "experiments/cli/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>

#include "core/models/parts/dreams.hpp"
#include "core/registry/known_as.hpp"
#include "core/support/error.hpp"
#include "experiments/cli/common.hpp"
#include "experiments/cli/manual.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/sweeps/settings_table.hpp"

namespace hardgrad::cli {
namespace {

// What an estimator says to each kind of network, by its defaults.
std::vector<std::pair<std::string, std::string>> support(const EstimatorEntry& entry) {
  struct Label final : Dreams {
    Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>&) const override { return batch; }
  };
  static const Label label;
  const auto spec = Spec::parse(entry.name);
  std::vector<std::pair<std::string, std::string>> result;
  const auto ask = [&](const std::string& name, std::vector<SiteDeclaration> sites) {
    result.emplace_back(name,
                        unsupported(spec, {.sites = std::move(sites), .posterior = wants_posterior(spec), .dreams = &label}));
  };
  const auto site = [](int options, int times, Reach reach) {
    return SiteDeclaration{.name = "choice", .options = options, .times = times, .state_width = 4, .reach = reach};
  };
  ask("one choice", {site(4, 1, Reach::own_costs)});
  ask("factorised", {site(4, 3, Reach::own_costs)});
  ask("sequential", {site(4, 3, Reach::later_choices)});
  ask("binary, factorised", {site(2, 3, Reach::own_costs)});
  ask("numbers, sequential", {{.name = "choice",
                               .times = 3,
                               .state_width = 4,
                               .reach = Reach::later_choices,
                               .kind = SiteKind::normal,
                               .columns = 2}});
  ask("no choice", {});
  return result;
}

nlohmann::json needs_json(const EstimatorEntry& entry) {
  auto list = nlohmann::json::array();
  for (const auto& need : entry.needs) {
    nlohmann::json one = {{"kind", kind_name(need)}, {"text", to_string(need)}};
    if (need.most) one["most"] = need.most;
    list.push_back(one);
  }
  return list;
}

void print_name(Manual& page, const std::string& name, const std::string& noun, const std::string& summary) {
  page.heading("NAME");
  page.paragraph(fmt::format("{} ({}) - {}", name, noun, summary));
}

// name[parameter=default,...]
void print_synopsis(Manual& page, const std::string& name, const std::vector<ParameterInfo>& parameters,
                    const std::string& use) {
  page.heading("SYNOPSIS");
  std::string spec = name;
  for (const auto& p : parameters)
    spec += fmt::format("{}{}={}", &p == &parameters.front() ? "[" : ", ", p.name, to_string(p.fallback));
  page.paragraph(spec + (parameters.empty() ? "" : "]"));
  page.paragraph(fmt::format("hardgrad measure {}", use));
}

void print_parameters(Manual& page, const std::vector<ParameterInfo>& parameters) {
  page.heading("PARAMETERS");
  if (parameters.empty()) page.paragraph("It takes none.");
  for (const auto& p : parameters)
    page.definition(p.name,
                    fmt::format("{}. {}{}, default {}.", p.help, p.type_name(), p.range().empty() ? "" : " " + p.range(),
                                to_string(p.fallback).empty() ? "empty" : to_string(p.fallback)));
}

// "Kool et al. 2019" of a citation
std::string author(const std::string& paper) { return paper.substr(0, paper.find(',')); }

void print_see_also(Manual& page, const EstimatorEntry& e) {
  std::vector<std::string> names;
  for (const auto& [name, other] : Estimators::instance().entries())
    if (name != e.name && (author(other.paper) == author(e.paper) || (other.target == e.target && e.target != "expected_loss")))
      names.push_back(name);
  page.heading("SEE ALSO");
  if (!names.empty()) page.paragraph(fmt::format("{}.", fmt::join(names, ", ")));
  page.paragraph(fmt::format("hardgrad list matrix; hardgrad test {}", e.name));
}

/// What an estimator claims with all settings at their defaults.
bool unbiased(const EstimatorEntry& e) { return claims_unbiased(Spec::parse(e.name)); }

/// The values of a parameter that may make a difference: all there are of a flag or a choice, the ends of a range of numbers.
std::vector<std::string> telling_values(const ParameterInfo& p) {
  if (p.type == ParameterInfo::Type::boolean) return {"false", "true"};
  if (p.type != ParameterInfo::Type::integer && p.type != ParameterInfo::Type::real) return p.choices;
  std::vector<std::string> ends;
  if (std::isfinite(p.low) && !p.open_low) ends.push_back(fmt::format("{}", p.low));
  if (std::isfinite(p.high) && !p.open_high) ends.push_back(fmt::format("{}", p.high));
  return ends;
}

/// The settings that alone, with all else at its default, make it claim the other: "normalise=true".
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

void print(const EstimatorEntry& e) {
  Manual page;
  print_name(page, e.name, "estimator", e.summary);
  print_synopsis(page, e.name, e.parameters, fmt::format("--task bits --estimator '{}' --exact", e.name));
  page.heading("DESCRIPTION");
  page.paragraph(fmt::format("{}.", e.paper));
  for (const auto& known : known_names())
    if (known.estimator() == e.name)
      page.paragraph(fmt::format("Known as {}{} ({}): {}.", known.name, known.spec == e.name ? "" : ", " + known.spec,
                                 known.paper, known.reason));
  print_parameters(page, e.parameters);
  page.heading("TARGET");
  page.paragraph(fmt::format("{}: {}.", e.target, Targets::instance().at(e.target).summary));
  page.heading("BIAS");
  const auto decisive = decisive_settings(e);
  page.paragraph(fmt::format("{}{}.", unbiased(e) ? "Unbiased" : "Biased",
                             decisive.empty() ? "" : fmt::format(", but not with {}", fmt::join(decisive, " or "))));
  page.heading("COST");
  page.paragraph(fmt::format("Rows of the network for each example: {}.", e.evaluations));
  page.paragraph("(K, k: samples; S: options; T: choices.)");
  page.heading("NEEDS");
  std::vector<std::string> needs;
  for (const auto& need : e.needs) needs.push_back(to_string(need));
  page.paragraph(needs.empty() ? "It declares no needs, and so works nowhere." : fmt::format("{}.", fmt::join(needs, "; ")));
  if (!e.promises.empty()) page.heading("PROMISES");
  for (const auto& promise : e.promises) page.paragraph(promise.text() + ".");
  page.heading("SUPPORTS");
  for (const auto& [name, reason] : support(e))
    page.paragraph(fmt::format("{}: {}.", name, reason.empty() ? "yes" : "no: " + reason));
  if (wants_posterior(Spec::parse(e.name)))
    page.paragraph("It needs a network with a learned posterior, which is built for it by itself.");
  print_see_also(page, e);
}

void print(const ModelEntry& e) {
  Manual page;
  print_name(page, e.name, "model", e.summary);
  std::string fitting;
  for (const auto& [name, task] : Tasks::instance().entries())
    if (Spec::parse(task.default_model).name == e.name) fitting += (fitting.empty() ? "" : ", ") + name;
  print_synopsis(
      page, e.name, e.parameters,
      fmt::format("--task {} --model '{}'", fitting.empty() ? "TASK" : fitting.substr(0, fitting.find(',')), e.name));
  page.heading("DESCRIPTION");
  page.paragraph(fmt::format("{}.", e.paper));
  print_parameters(page, e.parameters);
  page.heading("CHOICES");
  page.paragraph(fmt::format("{}; {}.", e.kinds, e.dependence));
  page.heading("NEEDS");
  page.paragraph(e.needs.empty() ? "Nothing of its task." : fmt::format("Of its task: {}.", fmt::join(e.needs, ", ")));
  page.heading("SEE ALSO");
  if (!fitting.empty()) page.paragraph(fmt::format("Tasks that take it by default: {}.", fitting));
  page.paragraph("hardgrad list models; hardgrad list matrix");
}

void print(const TaskEntry& e) {
  Manual page;
  print_name(page, e.name, "task", e.summary);
  print_synopsis(page, e.name, e.parameters, fmt::format("--task '{}'", e.name));
  page.heading("DESCRIPTION");
  page.paragraph(fmt::format("Data: {}.", e.data));
  print_parameters(page, e.parameters);
  page.heading("SEE ALSO");
  page.paragraph(fmt::format("Its model by default: {}. hardgrad list tasks", e.default_model));
}

void print(const TargetEntry& e) {
  Manual page;
  print_name(page, e.name, "target", e.summary);
  print_synopsis(page, e.name, e.parameters, "--task bits --estimator exact --exact");
  page.heading("DESCRIPTION");
  const auto target = Target(e.name);
  page.paragraph(target.terms().drawn_from == DrawnFrom::posterior ? "Choices are drawn from the learned posterior."
                                                                   : "Choices are drawn from the prior.");
  print_parameters(page, e.parameters);
  std::vector<std::string> names;
  for (const auto& [name, estimator] : Estimators::instance().entries())
    if (estimator.target == e.name || (e.name == "elbo" && estimator.target == "expected_loss")) names.push_back(name);
  page.heading("SEE ALSO");
  page.paragraph(fmt::format("Estimated by {}.", fmt::join(names, ", ")));
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
  put(R"(A sweep's file (TOML):

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

[tune]                     settings that each estimator is tuned in before the grid is run
train.learning_rate = {{ low = 1e-4, high = 0.1 }}   a range (log-uniform, or scale = "linear"), or a list of choices;
estimator.temperature = [0.5, 1]                   any of [train] that changes the training, or an estimator's own
trials = 12                settings drawn at random; left out: all combinations of the choices
seeds = [101, 102]         of the trials: none of the grid's
rounds = [0.1, 0.3, 1]     shares of train.steps: all settings get the first, the best the next; by default [1]
keep = 0.34                share of a round's settings that goes on; by default a third
metric = "loss"            or the name of a held-out loss or metric
split = "heldout"          that trials are judged on; train.evaluate_split is another one, here "test"

[train] and [measure] hold these settings; --set SECTION.NAME=VALUE overrides them:

)");
  std::vector<std::vector<std::string>> rows{{"SETTING", "TYPE", "DEFAULT", "RANGE", ""}};
  for (const auto& s : settings_table())
    rows.push_back({s.path, s.info.type_name(), to_string(s.info.fallback), s.info.range(), s.info.help});
  print_table(rows, "");
}

// Looks in one registry; `kind:name` narrows the search.
template <class Entry>
bool describe(const std::string& kind, const std::string& name, bool json, nlohmann::json& found, bool first) {
  if (!kind.empty() && kind != Entry::noun) return false;
  const auto& entries = Registry<Entry>::instance().entries();
  const auto it = entries.find(name);
  if (it == entries.end()) return false;
  if (!json && !first) put("\n");
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
  if (!any) any = describe<TargetEntry>(kind, name, json, found, true);  // an estimator of the same name comes first
  if (const auto* known = any ? nullptr : known_as(name); known && (kind.empty() || kind == EstimatorEntry::noun))
    any = describe<EstimatorEntry>("", known->estimator(), json, found, true);
  if (!any) {
    std::vector<std::string> names{"sweep"};
    for (const auto& more :
         {Estimators::instance().names(), Models::instance().names(), Tasks::instance().names(), Targets::instance().names()})
      for (const auto& n : more)
        if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
    throw UsageError(fmt::format("describe: there is nothing named \"{}\"{}", text, did_you_mean(name, names)));
  }
  if (json) print_json(found.size() == 1 ? found[0] : found);
  return 0;
}

}  // namespace

nlohmann::json names_json(const std::string& estimator) {
  auto list = nlohmann::json::array();
  for (const auto& known : known_names())
    if (estimator.empty() || known.estimator() == estimator)
      list.push_back({{"name", known.name}, {"spec", known.spec}, {"paper", known.paper}, {"reason", known.reason}});
  return list;
}
nlohmann::json entry_json(const EstimatorEntry& e) {
  auto supports = nlohmann::json::object();
  for (const auto& [name, reason] : support(e)) supports[name] = reason.empty() ? nlohmann::json(true) : nlohmann::json(reason);
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
          {"posterior", wants_posterior(Spec::parse(e.name))},
          {"needs", needs_json(e)},
          {"supports", supports},
          {"parameters", to_json(e.parameters)}};
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
nlohmann::json entry_json(const TargetEntry& e) {
  return {{"kind", "target"},
          {"name", e.name},
          {"summary", e.summary},
          {"posterior", Target(e.name).terms().drawn_from == DrawnFrom::posterior},
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
  auto* sub =
      app.add_subcommand("describe", "one estimator, model, task or target in full; `describe sweep` for a sweep's file");
  sub->add_option("name", options->name, "a name; model:bits, task:bits or target:soft where two share it")->required();
  sub->add_flag("--json", options->json, "print JSON: an object, or a list of them where several share the name");
  sub->callback([options, &action] { action = [options] { return describe_all(options->name, options->json); }; });
}

}  // namespace hardgrad::cli
