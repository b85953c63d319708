// Text, where the standard library stops short.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace hardgrad {

/// Without spaces and tabs at both ends.
inline std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// All bytes of a file; nothing if it cannot be read. An empty file is an empty text.
inline std::optional<std::string> file_contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path)) return {};
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return {};
  return bytes;
}

}  // namespace hardgrad
