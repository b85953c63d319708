// hardgrad list: what is registered, one line each.
#include <fmt/format.h>

#include <memory>

#include "core/estimator/estimator.hpp"
#include "experiments/cli/common.hpp"
#include "experiments/cli/describe.hpp"
#include "experiments/cli/verbs.hpp"

namespace hardgrad::cli {
namespace {

template <class Entry>
nlohmann::json entries_json() {
  auto list = nlohmann::json::array();
  for (const auto& [name, entry] : Registry<Entry>::instance().entries()) list.push_back(entry_json(entry));
  return list;
}

void print_estimators() {
  std::vector<std::vector<std::string>> rows{{"ESTIMATOR", "TARGET", "UNBIASED", "ROWS", ""}};
  for (const auto& [name, e] : Estimators::instance().entries())
    rows.push_back({name, to_string(e.target), e.unbiased ? "yes" : "no", e.evaluations, e.summary});
  print_table(rows, "");
}
void print_models() {
  std::vector<std::vector<std::string>> rows{{"MODEL", "CHOICES", ""}};
  for (const auto& [name, e] : Models::instance().entries()) rows.push_back({name, e.kinds, e.summary});
  print_table(rows, "");
}
void print_tasks() {
  std::vector<std::vector<std::string>> rows{{"TASK", ""}};
  for (const auto& [name, e] : Tasks::instance().entries()) rows.push_back({name, e.summary});
  print_table(rows, "");
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  struct Options {
    std::string what;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto* sub = app.add_subcommand("list", "what is registered, one line each");
  sub->add_option("what", options->what, "estimators, models or tasks; all by default")
      ->check(CLI::IsMember({"estimators", "models", "tasks"}));
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([options, &action] {
    action = [options] {
      const auto& what = options->what;
      if (options->json) {
        if (what == "estimators") print_json(entries_json<EstimatorEntry>());
        if (what == "models") print_json(entries_json<ModelEntry>());
        if (what == "tasks") print_json(entries_json<TaskEntry>());
        if (what.empty())
          print_json({{"estimators", entries_json<EstimatorEntry>()},
                      {"models", entries_json<ModelEntry>()},
                      {"tasks", entries_json<TaskEntry>()}});
        return 0;
      }
      if (what.empty() || what == "estimators") print_estimators();
      if (what.empty()) fmt::print("\n");
      if (what.empty() || what == "models") print_models();
      if (what.empty()) fmt::print("\n");
      if (what.empty() || what == "tasks") print_tasks();
      return 0;
    };
  });
}

}  // namespace hardgrad::cli
