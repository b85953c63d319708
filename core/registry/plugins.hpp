// Plugins from outside the tree: shared libraries that register their entries when they are loaded.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hardgrad {

struct Plugin {
  std::string path;                                             ///< canonical
  std::string fingerprint;                                      ///< hash of the file; identifies the build in results
  std::vector<std::pair<std::string, std::string>> registered;  ///< (noun, name)
};

/// Loads a copy of a shared library; loading it again does nothing. The libraries it depends on are found by the loader's
/// search paths, not by $ORIGIN. One-line UsageError if the file is missing, is not a plugin, is damaged, was built against
/// other headers than this program, or registers an existing name. Not thread-safe.
const Plugin& load_plugin(const std::string& path);

/// The loaded plugins, in order of loading.
const std::deque<Plugin>& loaded_plugins();

/// The plugin that registered the name, or null.
const Plugin* plugin_of(const std::string& noun, const std::string& name);

// The seal of a plugin: a hash of its bytes, appended to the file. It reveals damage after the build before any of the plugin's
// code runs. A plugin without a seal is accepted unchecked.

enum class PluginSeal { none, holds, broken };

PluginSeal plugin_seal(std::string_view bytes);

/// Appends a seal to a shared library, replacing an old seal. UsageError if the file is not a library or cannot be written.
void seal_plugin(const std::filesystem::path& path);

}  // namespace hardgrad
