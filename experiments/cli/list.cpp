// hardgrad list: the registered names, one line each.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <regex>

#include "core/estimator/estimator.hpp"
#include "core/registry/known_as.hpp"
#include "experiments/cli/entries.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/verification/scenes.hpp"

namespace hardgrad::cli {
namespace {

constexpr std::size_t most_columns = 120;  // one line each: `describe` has the rest

template <class Entry>
nlohmann::json entries_json() {
  auto list = nlohmann::json::array();
  for (const auto& [name, entry] : Registry<Entry>::instance().entries()) list.push_back(entry_json(entry));
  return list;
}

void print_estimators() {
  std::vector<std::vector<std::string>> rows{{"ESTIMATOR", "TARGET", "UNBIASED", ""}};
  for (const auto& [name, e] : Estimators::instance().entries())
    rows.push_back({name, e.target, claims_unbiased(Spec::parse(name)) ? "yes" : "no", e.summary});
  print_table(rows, "", most_columns);
}
void print_models() {
  std::vector<std::vector<std::string>> rows{{"MODEL", "CHOICES", ""}};
  for (const auto& [name, e] : Models::instance().entries()) rows.push_back({name, e.kinds, e.summary});
  print_table(rows, "", most_columns);
}
void print_targets() {
  std::vector<std::vector<std::string>> rows{{"TARGET", ""}};
  for (const auto& [name, e] : Targets::instance().entries()) rows.push_back({name, e.summary});
  print_table(rows, "", most_columns);
}
void print_tasks() {
  std::vector<std::vector<std::string>> rows{{"TASK", ""}};
  for (const auto& [name, e] : tasks::Tasks::instance().entries()) rows.push_back({name, e.summary});
  print_table(rows, "", most_columns);
}

void print_names() {
  std::vector<std::vector<std::string>> rows{{"KNOWN AS", "HERE", ""}};
  for (const auto& known : known_names()) rows.push_back({known.name, known.spec, known.reason});
  print_table(rows, "", most_columns);
}

/// Support of networks by estimators, with reasons: one row per estimator.
struct Matrix {
  std::vector<std::string> networks;
  std::map<std::string, std::vector<std::string>> reasons;  ///< by estimator; empty where it is supported
};
Matrix support_matrix() {
  Matrix matrix;
  for (const auto& scene : verification::scene_specs()) {
    matrix.networks.push_back(scene.name);
    const verification::SmallScene with[] = {{scene, false}, {scene, true}};
    for (const auto& name : Estimators::instance().names()) {
      const auto spec = Spec::parse(name);
      matrix.reasons[name].push_back(why_unsupported(spec, with[wants_posterior(spec)].model->structure()));
    }
  }
  return matrix;
}

nlohmann::json matrix_json() {
  const auto matrix = support_matrix();
  auto list = nlohmann::json::array();
  for (const auto& [name, reasons] : matrix.reasons)
    for (std::size_t i = 0; i < reasons.size(); ++i)
      list.push_back(
          {{"estimator", name}, {"network", matrix.networks[i]}, {"works", reasons[i].empty()}, {"reason", reasons[i]}});
  return list;
}

/// Prints as many columns as fit; the others follow below, with the first column repeated.
void print_in_blocks(const std::vector<std::vector<std::string>>& rows) {
  const auto width = [&](std::size_t column) {
    std::size_t most = 0;
    for (const auto& row : rows) most = std::max(most, row[column].size());
    return most + 2;
  };
  for (std::size_t first = 1; first < rows[0].size();) {
    std::size_t end = first;
    for (std::size_t used = width(0); end < rows[0].size() && (end == first || used + width(end) <= most_columns); ++end)
      used += width(end);
    std::vector<std::vector<std::string>> block;
    for (const auto& row : rows) {
      auto& kept = block.emplace_back(1, row[0]);
      kept.insert(kept.end(), row.begin() + static_cast<std::ptrdiff_t>(first), row.begin() + static_cast<std::ptrdiff_t>(end));
    }
    if (first > 1) put("\n");
    print_table(block, "");
    first = end;
  }
}

void print_matrix() {
  const auto matrix = support_matrix();
  std::vector<std::string> notes;
  std::vector<std::vector<std::string>> rows{{"ESTIMATOR"}, {""}, {""}};
  for (auto name : matrix.networks)  // one word per line, to save width
    for (auto& row : rows) {
      const auto cut = &row == &rows.back() ? name.size() : std::min(name.find('_'), name.size() - 1) + 1;
      row.push_back(name.substr(0, cut));
      name.erase(0, cut);
    }
  for (const auto& [name, reasons] : matrix.reasons) {
    auto& row = rows.emplace_back(1, name);
    for (auto reason : reasons) {
      reason = std::regex_replace(reason, std::regex("\\d+"), "N");  // one note for all numbers of options
      if (reason.empty()) {
        row.push_back("works");
        continue;
      }
      const auto note = std::find(notes.begin(), notes.end(), reason) - notes.begin();
      if (note == std::ssize(notes)) notes.push_back(reason);
      row.push_back(fmt::format("no ({})", note + 1));
    }
  }
  print_in_blocks(rows);
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const auto lines = wrapped(notes[i], most_columns - 6);
    for (std::size_t k = 0; k < lines.size(); ++k)
      put("{}{} {}\n", i + k == 0 ? "\n" : "", k == 0 ? fmt::format("({})", i + 1) : "   ", lines[k]);
  }
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  struct Options {
    std::string what;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb(app, "list", "list the registered names, one line each");
  verb.add("what", options->what,
           "estimators, models, tasks, targets; names: estimators' names elsewhere; matrix: the networks that each "
           "estimator supports")
      .one_of({"estimators", "models", "tasks", "targets", "names", "matrix"});
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] {
    const auto& what = options->what;
    if (options->json) {
      if (what == "estimators") print_json(entries_json<EstimatorEntry>());
      if (what == "models") print_json(entries_json<ModelEntry>());
      if (what == "tasks") print_json(entries_json<tasks::TaskEntry>());
      if (what == "targets") print_json(entries_json<TargetEntry>());
      if (what == "names") print_json(names_json());
      if (what == "matrix") print_json(matrix_json());
      if (what.empty())
        print_json({{"estimators", entries_json<EstimatorEntry>()},
                    {"models", entries_json<ModelEntry>()},
                    {"tasks", entries_json<tasks::TaskEntry>()}});
      return 0;
    }
    if (what == "matrix") print_matrix();
    if (what == "names") print_names();
    if (what == "targets") print_targets();
    if (what.empty() || what == "estimators") print_estimators();
    if (what.empty()) put("\n");
    if (what.empty() || what == "models") print_models();
    if (what.empty()) put("\n");
    if (what.empty() || what == "tasks") print_tasks();
    return 0;
  });
}

}  // namespace hardgrad::cli
