// hardgrad export: a result as tables of text.
#include <fmt/format.h>

#include <memory>

#include "experiments/cli/common.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/storage/csv.hpp"

namespace hardgrad::cli {

void add_export(CLI::App& app, Action& action) {
  struct Options {
    std::string path, csv;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto* sub = app.add_subcommand("export", "write a result as CSV tables");
  sub->add_option("file", options->path, "a merged result (.h5)")->required();
  sub->add_option("--csv", options->csv, "the folder to write to, made if need be")->required();
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([options, &action] {
    action = [options] {
      const auto paths = export_csv(options->path, options->csv);
      if (options->json)
        print_json({{"files", paths}});
      else
        for (const auto& path : paths) put("{}\n", path);
      return 0;
    };
  });
}

}  // namespace hardgrad::cli
