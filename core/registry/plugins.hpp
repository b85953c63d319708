// Plugins from outside the tree: shared libraries whose loading registers what they hold.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace hardgrad {

struct Plugin {
  std::string path;                                             ///< as found
  std::string fingerprint;                                      ///< hash of the file: results of another build are not these
  std::vector<std::pair<std::string, std::string>> registered;  ///< (noun, name)
};

/// Loads a copy of a shared library; a second time does nothing. What it needs beside itself is found by the loader's own
/// paths, not by $ORIGIN. UsageError in one line if there is none, it is no plugin or not whole, it was built against other
/// headers than this program, or it registers a name that is taken. Not thread-safe.
const Plugin& load_plugin(const std::string& path);

/// Those loaded so far, in order.
const std::deque<Plugin>& loaded_plugins();

/// The plugin that registered the name, or null.
const Plugin* plugin_of(const std::string& noun, const std::string& name);

}  // namespace hardgrad
