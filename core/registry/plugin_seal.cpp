#include "core/registry/plugin_seal.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <fstream>

#include "core/support/error.hpp"
#include "core/support/text.hpp"

namespace hardgrad {
namespace {

constexpr std::string_view prefix = "hardgrad-seal:";

std::string seal_of(std::string_view bytes) { return fmt::format("{}{:016x}", prefix, XXH64(bytes.data(), bytes.size(), 0)); }

constexpr std::size_t seal_size = prefix.size() + 16;

bool has_seal(std::string_view bytes) {
  return bytes.size() >= seal_size && bytes.substr(bytes.size() - seal_size).starts_with(prefix);
}

}  // namespace

PluginSeal plugin_seal(std::string_view bytes) {
  if (!has_seal(bytes)) return PluginSeal::none;
  const auto sealed = bytes.substr(0, bytes.size() - seal_size);
  return bytes.substr(sealed.size()) == seal_of(sealed) ? PluginSeal::holds : PluginSeal::broken;
}

void seal_plugin(const std::filesystem::path& path) {
  const auto contents = file_contents(path);
  if (!contents) throw UsageError(fmt::format("{}: cannot be read", path.string()));
  std::string_view bytes = *contents;
  if (!bytes.starts_with("\x7f"
                         "ELF"))
    throw UsageError(fmt::format("{}: is not a shared library", path.string()));
  std::error_code error;
  if (has_seal(bytes)) {
    bytes.remove_suffix(seal_size);
    std::filesystem::resize_file(path, bytes.size(), error);
  }
  std::ofstream file(path, std::ios::binary | std::ios::app);
  if (error || !(file << seal_of(bytes) << std::flush)) throw UsageError(fmt::format("{}: cannot be written", path.string()));
}

}  // namespace hardgrad
