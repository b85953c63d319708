// hardgrad describe NAME: everything that an estimator, model, task or target declares; `describe sweep`: every setting of a
// sweep's file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <regex>

#include "core/estimator/promises.hpp"
#include "core/registry/known_as.hpp"
#include "experiments/cli/candidates.hpp"
#include "experiments/cli/entries.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/sweeps/settings_table.hpp"

namespace hardgrad::cli {
namespace {

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
  if (parameters.empty()) page.paragraph("None.");
  for (const auto& p : parameters)
    page.definition(p.name, fmt::format("{}. {}{}{}, default {}.", p.help, p.type_name(), p.range().empty() ? "" : " ",
                                        p.range(), to_string(p.fallback).empty() ? "empty" : to_string(p.fallback)));
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
  if (!e.presets.empty()) page.heading("PRESETS");
  for (const auto& preset : e.presets)
    page.definition(preset.name,
                    fmt::format("{}. {}.", std::regex_replace(preset.settings, std::regex(","), ", "), preset.paper));
  page.heading("TARGET");
  page.paragraph(fmt::format("{}: {}.", e.target, Targets::instance().at(e.target).summary));
  page.heading("BIAS");
  const auto decisive = decisive_settings(e);
  page.paragraph(fmt::format("{}{}.", unbiased(e) ? "Unbiased" : "Biased",
                             decisive.empty() ? "" : fmt::format(", but not with {}", fmt::join(decisive, " or "))));
  page.heading("COST");
  page.paragraph(fmt::format("Rows of the network for each question and example, at most: {}.", e.evaluations));
  if (e.couples_examples) page.paragraph("It couples the examples of a batch: the gradient of one depends on the others.");
  page.paragraph(
      "(K: samples; S: options of a choice; T: choices; Q: questions; D: columns of a question. shared: choices share a cost; "
      "joint: choices of different questions share a cost; sequential: choices feed later ones; learning: the estimator's "
      "parameters are in training. Below: rows for a network of three questions with four options each, or two if binary.)");
  page.heading("NEEDS");
  std::vector<std::string> needs;
  for (const auto& need : e.needs) needs.push_back(to_string(need));
  page.paragraph(needs.empty() ? "It declares no needs and therefore supports no network."
                               : fmt::format("{}.", fmt::join(needs, "; ")));
  if (!e.promises.empty()) page.heading("PROMISES");
  for (const auto& promise : e.promises) page.paragraph(promise.text() + ".");
  page.heading("SUPPORTS");
  for (const auto& [network, reason, rows] : support(e))
    page.paragraph(fmt::format("{}: {}{}.", network, reason.empty() ? "yes" : "no: " + reason,
                               rows ? fmt::format(", {:.6g} row{}", *rows, *rows == 1 ? "" : "s") : ""));
  if (wants_posterior(Spec::parse(e.name)))
    page.paragraph("It needs a network with a learned posterior, which is built automatically.");
  print_see_also(page, e);
}

void print(const ModelEntry& e) {
  Manual page;
  print_name(page, e.name, "model", e.summary);
  const auto own_tasks = tasks::tasks_of(e.name);
  print_synopsis(page, e.name, e.parameters,
                 fmt::format("--task {} --model '{}'", own_tasks.empty() ? "TASK" : own_tasks.front(), e.name));
  page.heading("DESCRIPTION");
  page.paragraph(fmt::format("{}.", e.paper));
  print_parameters(page, e.parameters);
  page.heading("CHOICES");
  page.paragraph(fmt::format("{}; {}.", e.kinds, e.dependence));
  page.heading("NEEDS");
  page.paragraph(e.needs.empty() ? "Nothing of its task." : fmt::format("Of its task: {}.", fmt::join(e.needs, ", ")));
  page.heading("SEE ALSO");
  if (!own_tasks.empty()) page.paragraph(fmt::format("Tasks that take it by default: {}.", fmt::join(own_tasks, ", ")));
  page.paragraph("hardgrad list models; hardgrad list matrix");
}

void print(const tasks::TaskEntry& e) {
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
  for (const auto& s : sweeps::settings_table())
    list.push_back({{"name", s.path},
                    {"type", s.info.type_name()},
                    {"default", to_json(s.info.fallback)},
                    {"range", s.info.range()},
                    {"help", s.info.help},
                    {"absent", s.info.absent ? to_json(*s.info.absent) : nlohmann::json()}});
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
train.learning_rate = [0.1, 0.01]    any setting below can be an axis

[[zip]]                    lists paired element by element, instead of [grid]
[[exclude]]                omitted combinations: all keys must match; * and ? are wildcards
[[override]]               when = {{ task = "qa" }}, set = {{ train.steps = 500 }}

[tune]                     settings to tune for each estimator before the grid runs
train.learning_rate = {{ low = 1e-4, high = 0.1 }}   a range (log-uniform, or scale = "linear"), or a list of choices;
estimator.temperature = [0.5, 1]                   any training setting of [train], or an estimator's parameter
trials = 12                number of random settings; by default all combinations of the choices
seeds = [101, 102]         of the trials: none of the grid's
rounds = [0.1, 0.3, 1]     fractions of train.steps: the first for all settings, the next for the best; by default [1]
keep = 0.34                fraction of a round's settings that continue; by default a third
metric = "loss"            or the name of a held-out loss or metric
split = "heldout"          split for evaluating trials; train.evaluate_split must be another one, here "test"

[train] and [measure] hold these settings; --set SECTION.NAME=VALUE overrides them:

)");
  std::vector<std::vector<std::string>> rows{{"SETTING", "TYPE", "DEFAULT", "RANGE", ""}};
  for (const auto& s : sweeps::settings_table())
    rows.push_back({s.path, s.info.type_name(), to_string(s.info.fallback), s.info.range(), s.info.help});
  print_table(rows, "");
}

int describe_all(const std::string& text, bool json) {
  if (text.find(':') == std::string::npos && Spec::parse(text).name == "sweep") {
    json ? print_json(sweep_json()) : print_sweep();
    return 0;
  }
  const auto entries = entries_named(text, {"sweep"});
  auto list = nlohmann::json::array();
  for (const auto& entry : entries) {
    if (!json && &entry != &entries.front()) put("\n");
    std::visit([&](const auto* e) { json ? list.push_back(entry_json(*e)) : print(*e); }, entry);
  }
  if (json) print_json(list.size() == 1 ? list[0] : list);
  return 0;
}

}  // namespace

void add_describe(CLI::App& app, Action& action) {
  struct Options {
    std::string name;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb(app, "describe", "one estimator, model, task or target in full; `describe sweep` for a sweep's file");
  verb.add("name", options->name, "a name; model:bits, task:bits or target:soft if two share it")
      .required()
      .completed_by([](const std::string& text) {
        auto found = specs(text);
        found.emplace_back("sweep");
        return found;
      });
  verb.flag("--json", options->json, "print JSON: an object, or a list of them if several share the name");
  verb.does(action, [options] { return describe_all(options->name, options->json); });
}

}  // namespace hardgrad::cli
