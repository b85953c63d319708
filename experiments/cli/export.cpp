// hardgrad export: a result as tables of text.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

#include "experiments/cli/json.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/storage/csv.hpp"
#include "experiments/support/utf8.hpp"

namespace hardgrad::cli {

void add_export(CLI::App& app, Action& action) {
  struct Options {
    std::string path, csv;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb(app, "export", "write a result as CSV tables");
  verb.add("file", options->path, "a merged result (.h5)").required();
  verb.add("--csv", options->csv, "the output folder, created if needed").required();
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] {
    const auto paths = storage::export_csv(options->path, options->csv);
    if (options->json)
      print_json({{"files", paths}});
    else
      for (const auto& path : paths) put("{}\n", printable(path));
    return 0;
  });
}

}  // namespace hardgrad::cli
