// hardgrad seal: adds a plugin's seal as part of its build.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

#include "core/registry/plugins.hpp"
#include "experiments/cli/json.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/support/path_kind.hpp"

namespace hardgrad::cli {

void add_seal(CLI::App& app, Action& action) {
  struct Options {
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb(app, "seal", "add a seal to a plugin, which detects damage; hardgrad_add_plugin() does this");
  verb.hide();
  verb.add("file", options->path, "a plugin (.so)").required();
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] {
    refuse_strange<UsageError>(options->path);
    seal_plugin(options->path);
    options->json ? print_json({{"sealed", options->path}}) : put("{} is sealed\n", options->path);
    return 0;
  });
}

}  // namespace hardgrad::cli
