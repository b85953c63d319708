// The seal of a plugin: a hash of its bytes, behind them. A library that was damaged after its build is then known before any
// of its code runs; what is not sealed is believed.
#pragma once

#include <filesystem>
#include <string_view>

namespace hardgrad {

enum class PluginSeal { none, holds, broken };

PluginSeal plugin_seal(std::string_view bytes);

/// Puts a seal behind a library, in place of one that it has. UsageError if it is none, or cannot be written.
void seal_plugin(const std::filesystem::path& path);

}  // namespace hardgrad
