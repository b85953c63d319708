#include "core/registry/plugins.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>

#include "core/abi.hpp"
#include "core/registry/registry.hpp"
#include "core/support/error.hpp"
#include "core/support/text.hpp"

namespace hardgrad {
namespace {

std::deque<Plugin>& plugins() {
  static std::deque<Plugin> all;
  return all;
}

/// The library's marker. It is read from the file, because loading a library runs its code.
struct Marker {
  std::string abi;  ///< the ABI it was built against; empty if there is no marker
  bool sealed = false;
};
Marker marker_of(const std::string& bytes) {
  for (const bool sealed : {true, false}) {
    const std::string_view prefix = sealed ? "hardgrad-sealed-abi:" : "hardgrad-abi:";
    if (const auto at = bytes.find(prefix); at != std::string::npos)
      return {bytes.substr(at + prefix.size(), bytes.find('\0', at) - at - prefix.size()), sealed};
  }
  return {};
}

/// True if the file holds everything that its ELF headers refer to. (Mapping pages beyond its end would end in SIGBUS.)
bool whole_elf(const std::string& bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto within = [&](std::uint64_t from, std::uint64_t length) {
    return from <= bytes.size() && length <= bytes.size() - from;
  };
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      !within(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)) ||
      !within(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize))
    return false;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (!within(segment.p_offset, segment.p_filesz)) return false;
  }
  return true;
}

/// Copies the library to memory; returns a path that is valid while the program runs. So the hashed bytes are the loaded bytes,
/// and rebuilding the file does not affect a running sweep.
std::string copy_in_memory(const std::string& bytes, const std::string& path) {
  const int file = ::memfd_create(path.substr(path.rfind('/') + 1).substr(0, 200).c_str(), MFD_CLOEXEC);
  for (std::size_t done = 0; file >= 0 && done < bytes.size();) {
    const auto put = ::write(file, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw UsageError(fmt::format("plugin {}: cannot be copied to memory: {}", path, std::strerror(errno)));
    done += static_cast<std::size_t>(put);
  }
  if (file < 0) throw UsageError(fmt::format("plugin {}: cannot be copied to memory: {}", path, std::strerror(errno)));
  return fmt::format("/proc/self/fd/{}", file);  // stays open: the loader identifies libraries by path
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
  const auto [abi, sealed] = marker_of(bytes);
  constexpr std::string_view ours = HARDGRAD_ABI;
  if (!bytes.starts_with("\x7f"
                         "ELF") ||
      abi.empty())
    throw UsageError(
        fmt::format("plugin {}: is not a hardgrad plugin; build it with #include <hardgrad/plugin.hpp> and the flags of "
                    "`hardgrad plugin-flags`, or by hardgrad_add_plugin() of CMake",
                    path));
  if (!whole_elf(bytes)) throw UsageError(fmt::format("plugin {}: is truncated or damaged: build or copy it again", path));
  if (const auto seal = plugin_seal(bytes); seal == PluginSeal::broken || (sealed && seal == PluginSeal::none))
    throw UsageError(fmt::format(
        "plugin {}: is damaged, or was changed after its build: build or copy it again, or run `hardgrad seal` if the change "
        "is intended",
        path));
  if (abi != ours)
    throw UsageError(
        fmt::format("plugin {}: was built against hardgrad {}, this is {}: build it again against this "
                    "program's installation",
                    path, abi, ours));
  const auto copy = copy_in_memory(bytes, file.string());
  auto& log = registrations();
  const auto before = log.made.size();
  log.loading_plugin = true;
  const auto* handle = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  log.loading_plugin = false;
  if (!handle) {
    const auto* told = dlerror();
    std::string why = told ? told : "unknown reason";
    if (why.starts_with(copy + ": ")) why.erase(0, copy.size() + 2);
    throw UsageError(fmt::format("plugin {}: cannot be loaded: {}", path, why));
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
