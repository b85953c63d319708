#include "core/registry/plugins.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <deque>
#include <filesystem>

#include "core/abi.hpp"
#include "core/registry/registry.hpp"
#include "core/support/text.hpp"

namespace hardgrad {
namespace {

std::deque<Plugin>& plugins() {
  static std::deque<Plugin> all;
  return all;
}

/// What the library says it was built against: the text of its marker; empty if it has none. Read from the file, because
/// loading a library already runs its code.
std::string abi_of(const std::string& bytes) {
  static constexpr std::string_view prefix = "hardgrad-abi:";
  const auto at = bytes.find(prefix);
  return at == std::string::npos ? "" : bytes.substr(at + prefix.size(), bytes.find('\0', at) - at - prefix.size());
}

}  // namespace

const Plugin& load_plugin(const std::string& path) {
  std::error_code error;
  const auto file = std::filesystem::canonical(path, error);
  if (error) throw UsageError(fmt::format("plugin {}: no such file; give the path of a shared library", path));
  for (const auto& plugin : plugins())
    if (plugin.path == file) return plugin;
  const auto contents = file_contents(file);
  if (!contents) throw UsageError(fmt::format("plugin {}: cannot be read", path));
  const auto& bytes = *contents;
  const auto abi = abi_of(bytes);
  constexpr std::string_view ours = HARDGRAD_ABI;
  if (!bytes.starts_with("\x7f"
                         "ELF") ||
      abi.empty())
    throw UsageError(
        fmt::format("plugin {}: is no plugin of hardgrad; build it with hardgrad_add_plugin() and "
                    "#include <hardgrad/plugin.hpp>",
                    path));
  if (abi != ours)
    throw UsageError(
        fmt::format("plugin {}: was built against hardgrad {}, this is {}: build it again against this "
                    "program's installation",
                    path, abi, ours));
  auto& log = registrations();
  const auto before = log.made.size();
  log.loading_plugin = true;
  const auto* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  log.loading_plugin = false;
  if (!handle) {
    const auto* why = dlerror();
    throw UsageError(fmt::format("plugin {}: cannot be loaded: {}", path, why ? why : "unknown reason"));
  }
  for (const auto& [noun, name] : std::exchange(log.refused, {}))
    throw UsageError(
        fmt::format("plugin {}: registers the {} \"{}\", which exists already: give it another name", path, noun, name));
  for (const auto& fault : std::exchange(log.faults, {})) throw UsageError(fmt::format("plugin {}: its {}", path, fault));
  Plugin plugin{file, fmt::format("{:016x}", XXH64(bytes.data(), bytes.size(), 0)), {}};
  plugin.registered.assign(log.made.begin() + static_cast<std::ptrdiff_t>(before), log.made.end());
  if (plugin.registered.empty()) throw UsageError(fmt::format("plugin {}: registers nothing; use HARDGRAD_ESTIMATOR", path));
  return plugins().emplace_back(std::move(plugin));
}

const std::deque<Plugin>& loaded_plugins() { return plugins(); }

const Plugin* plugin_of(const std::string& noun, const std::string& name) {
  for (const auto& plugin : plugins())
    for (const auto& [its_noun, its_name] : plugin.registered)
      if (its_noun == noun && its_name == name) return &plugin;
  return nullptr;
}

Registrations& registrations() {
  static Registrations log;
  return log;
}

}  // namespace hardgrad
