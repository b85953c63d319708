// The seal of a plugin: a hash of its bytes, appended to the file. It reveals damage after the build before any of the plugin's
// code runs. A plugin without a seal is accepted unchecked.
#pragma once

#include <filesystem>
#include <string_view>

namespace hardgrad {

enum class PluginSeal { none, holds, broken };

PluginSeal plugin_seal(std::string_view bytes);

/// Appends a seal to a shared library, replacing an old seal. UsageError if the file is not a library or cannot be written.
void seal_plugin(const std::filesystem::path& path);

}  // namespace hardgrad
