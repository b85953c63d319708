// hardgrad plugin-flags: how a compiler finds the headers that belong to this program; hardgrad seal: adds a plugin's seal as
// part of its build.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/abi.hpp"
#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/support/path_kind.hpp"

namespace hardgrad::cli {
namespace {

/// The folder with include/hardgrad: this program's own in a build, the one above it in an installation and in the wheel.
std::filesystem::path prefix() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& place : {folder, folder.parent_path()})
    if (std::filesystem::exists(place / "include/hardgrad/plugin.hpp")) return place;
  throw UsageError(
      fmt::format("plugin-flags: {} has no headers beside it: install both, with `cmake --install BUILD --component hardgrad "
                  "--prefix PREFIX`",
                  (folder / "hardgrad").string()));
}

}  // namespace

void add_plugin_flags(CLI::App& app, Action& action) {
  struct Options {
    bool prefix = false, json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb(app, "plugin-flags", "print a compiler's flags for a plugin: c++ $(hardgrad plugin-flags) mine.cpp -o mine.so");
  verb.flag("--prefix", options->prefix, "print the folder for CMake's find_package(hardgrad), as CMAKE_PREFIX_PATH");
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] {
    const auto folder = prefix().string();
    if (!options->prefix && folder.find_first_of(" \t\n") != std::string::npos)
      throw UsageError(fmt::format(
          "plugin-flags: a shell splits the path {} at its space: use CMake, with `hardgrad plugin-flags --prefix`", folder));
    const auto flags = fmt::format("{} -I{}/include -I{}/include/hardgrad", HARDGRAD_PLUGIN_FLAGS, folder, folder);
    if (options->json)
      print_json({{"flags", flags}, {"prefix", folder}});
    else
      put("{}\n", options->prefix ? folder : flags);
    return 0;
  });
}

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
    reject_control_characters<UsageError>(options->path);
    seal_plugin(options->path);
    options->json ? print_json({{"sealed", options->path}}) : put("{} is sealed\n", options->path);
    return 0;
  });
}

}  // namespace hardgrad::cli
