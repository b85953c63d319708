// hardgrad seal: a plugin's seal, put there by its build.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

#include "core/registry/plugin_seal.hpp"
#include "experiments/cli/json.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/support/place.hpp"

namespace hardgrad::cli {

void add_seal(CLI::App& app, Action& action) {
  struct Options {
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb(app, "seal", "put a seal on a plugin, by which damage is noticed: done by hardgrad_add_plugin()");
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
