// hardgrad test: is an estimator what it says it is?
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/estimator/estimator.hpp"
#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/cli/common.hpp"
#include "experiments/cli/manual.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verbs.hpp"
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
  return {{"estimator", verdict.estimator},
          {"claims_unbiased", verdict.unbiased},
          {"passed", verdict.passed()},
          {"checks", checks}};
}

void print(const Verdict& verdict) {
  put("{}\n", verdict.estimator);
  std::vector<std::vector<std::string>> rows{{"  OUTCOME", "CHECK", "WHERE", ""}};
  for (const auto& check : verdict.checks)
    rows.push_back({"  " + to_string(check.outcome), check.what, check.where, check.detail});
  print_table(rows, "");
  const auto failed = verdict.count(Check::Outcome::failed);
  if (failed > 0)
    put("{}: {}, {} of {} checks\n", verdict.estimator, red("FAILED"), failed, verdict.checks.size());
  else if (!verdict.passed())
    put("{}: {}, it works on no network\n", verdict.estimator, red("FAILED"));
  else
    put("{}: passed, {} checks, {} skipped{}\n", verdict.estimator, verdict.count(Check::Outcome::passed),
        verdict.count(Check::Outcome::skipped), verdict.unbiased ? "" : "; biased as it says: its bias is shown, not judged");
}

}  // namespace

void add_test(CLI::App& app, Action& action) {
  struct Options {
    std::vector<std::string> estimators;
    bool first_failure = false, json = false;
  };
  auto options = std::make_shared<Options>();
  auto* sub = app.add_subcommand("test", "is an estimator what it says? contract, exact moments, invariances");
  sub->add_option("estimator", options->estimators, "e.g. 'rloo[samples=4]'; by default all that --plugin brings");
  sub->add_flag("-x,--exitfirst", options->first_failure, "leave out what follows the first check that fails");
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([options, &action] {
    action = [options] {
      auto names = options->estimators;
      if (names.empty())
        for (const auto& plugin : loaded_plugins())
          for (const auto& [noun, name] : plugin.registered)
            if (noun == EstimatorEntry::noun) names.push_back(name);
      if (names.empty()) throw UsageError("test: name an estimator, or give --plugin LIBRARY to test what it registers");
      auto all = nlohmann::json::array();
      bool passed = true;
      for (const auto& name : names) {
        const auto verdict = verification::verify(Spec::parse(name), options->first_failure);
        passed &= verdict.passed();
        if (options->json)
          all.push_back(to_json(verdict));
        else
          print(verdict);
      }
      if (options->json) print_json(all);
      return passed ? 0 : 1;
    };
  });
}

}  // namespace hardgrad::cli
