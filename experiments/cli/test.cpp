// hardgrad test: verifies the declared properties of an estimator, a model or a task.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/estimator/estimator.hpp"
#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/cli/candidates.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/preflight.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/verification/verify.hpp"

namespace hardgrad::cli {
namespace {

using verification::Check;
using verification::Verdict;

nlohmann::json to_json(const Verdict& verdict) {
  auto checks = nlohmann::json::array();
  for (const auto& check : verdict.checks)
    checks.push_back(
        {{"check", check.what}, {"where", check.where}, {"outcome", to_string(check.outcome)}, {"detail", check.detail}});
  nlohmann::json json{{verdict.noun, verdict.name}, {"passed", verdict.passed()}, {"checks", checks}};
  if (verdict.noun == EstimatorEntry::noun) json["claims_unbiased"] = verdict.unbiased;
  return json;
}

void print(const Verdict& verdict) {
  put("{}\n", verdict.name);
  std::vector<std::vector<std::string>> rows{{"  OUTCOME", "CHECK", "WHERE", ""}};
  for (const auto& check : verdict.checks)
    rows.push_back({"  " + to_string(check.outcome), check.what, check.where, check.detail});
  print_table(rows, "");
  const auto failed = verdict.count(Check::Outcome::failed);
  if (failed > 0)
    put("{}: {}, {} of {} checks\n", verdict.name, red("FAILED"), failed, verdict.checks.size());
  else if (!verdict.passed())
    put("{}: {}, it supports no network\n", verdict.name, red("FAILED"));
  else
    put("{}: passed, {} checks, {} skipped{}\n", verdict.name, verdict.count(Check::Outcome::passed),
        verdict.count(Check::Outcome::skipped), verdict.unbiased ? "" : "; biased as declared: its bias is shown, not tested");
}

struct TestArguments {
  std::vector<std::string> names;
  std::string model, task;
  bool first_failure = false, json = false;
};

/// Something to test.
struct Subject {
  std::string noun, spec;
};

/// The subject of a bare name.
Subject meant(const std::string& text) {
  const auto name = Spec::parse(text).name;
  std::vector<std::string> nouns, names;
  const auto look = [&](const auto& registry, const char* noun) {
    if (registry.entries().contains(name)) nouns.emplace_back(noun);
    for (const auto& [other, entry] : registry.entries()) names.push_back(other);
  };
  look(Estimators::instance(), EstimatorEntry::noun);
  look(Models::instance(), ModelEntry::noun);
  look(tasks::Tasks::instance(), tasks::TaskEntry::noun);
  if (nouns.empty())
    throw UsageError(fmt::format("test: there is no estimator, model or task named \"{}\"{}", name, did_you_mean(name, names)));
  if (nouns.size() > 1)
    throw UsageError(
        fmt::format("test: {} is a {} and a {}: give --model {} or --task {}", name, nouns[0], nouns[1], text, text));
  return {nouns[0], text};
}

/// The named subjects in order; without names, all registrations of plugins.
std::vector<Subject> subjects(const TestArguments& options) {
  std::vector<Subject> all;
  for (const auto& name : options.names) all.push_back(meant(name));
  if (!options.model.empty()) all.push_back({ModelEntry::noun, options.model});
  if (all.empty() && !options.task.empty()) return {{tasks::TaskEntry::noun, options.task}};
  if (!options.task.empty())
    for (const auto& subject : all)
      if (subject.noun != ModelEntry::noun)
        throw UsageError(fmt::format("test: --task gives the data to test a model; {} is {} {}", subject.spec,
                                     subject.noun == EstimatorEntry::noun ? "an" : "a", subject.noun));
  if (all.empty())
    for (const auto& plugin : loaded_plugins())
      for (const auto& [noun, name] : plugin.registered)
        if (noun == EstimatorEntry::noun || noun == ModelEntry::noun || noun == tasks::TaskEntry::noun)
          all.push_back({noun, name});
  if (all.empty())
    throw UsageError("test: name an estimator, a model or a task, or give --plugin LIBRARY to test its registrations");
  return all;
}

Verdict verdict_of(const Subject& subject, const TestArguments& options) {
  const auto spec = Spec::parse(subject.spec);
  if (subject.noun == EstimatorEntry::noun) return verification::verify(spec, options.first_failure);
  if (subject.noun == tasks::TaskEntry::noun) return verification::verify_task(spec, options.first_failure);
  return verification::verify_model(spec, options.task.empty() ? std::nullopt : std::optional<Spec>(Spec::parse(options.task)),
                                    options.first_failure);
}

}  // namespace

void add_test(CLI::App& app, Action& action) {
  auto options = std::make_shared<TestArguments>();
  Verb verb(app, "test", "verify an estimator, model or task: contract, exact moments, invariances");
  verb.add("name", options->names, "estimators, models, tasks, e.g. 'rloo[samples=4]', translator; by default all of --plugin")
      .completed_by(specs);
  verb.add("--model", options->model, "a model, if a task has the same name").completed_by(model_specs);
  verb.add("--task", options->task, "the data to test a model, by default a small matching task; alone: a task to test")
      .completed_by(task_specs);
  verb.flag("-x,--exitfirst", options->first_failure, "stop at the first failed check");
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] {
    warn_about_kernel();
    auto all = nlohmann::json::array();
    bool passed = true;
    for (const auto& subject : subjects(*options)) {
      const auto verdict = verdict_of(subject, *options);
      passed &= verdict.passed();
      if (options->json)
        all.push_back(to_json(verdict));
      else
        print(verdict);
    }
    if (options->json) print_json(all);
    return passed ? 0 : 1;
  });
}

}  // namespace hardgrad::cli
