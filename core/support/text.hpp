// Text functions that the standard library lacks.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace hardgrad {

/// The text without spaces and tabs at both ends.
inline std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// "1 thing", "n things"
inline std::string counted(std::size_t n, const std::string& thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

/// True for all bytes of a UTF-8 character except the first.
constexpr bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u; }

/// The text as quoted in a message: all of it or, if it is long, the part around byte `at`. UTF-8 characters are not split.
inline std::string excerpt(std::string_view text, std::size_t at = 0) {
  constexpr std::size_t most = 200, before = 60;
  if (text.size() <= most) return std::string(text);
  const auto inside = [&](std::size_t i) { return i < text.size() && continues_character(text[i]); };
  std::size_t from = at > before ? at - before : 0, to = std::min(from + most, text.size());
  while (inside(from)) ++from;
  while (inside(to)) --to;
  return (from > 0 ? "..." : "") + std::string(text.substr(from, to - from)) + (to < text.size() ? "..." : "");
}

/// All bytes of a file; nothing if it cannot be read. An empty file gives an empty string.
inline std::optional<std::string> file_contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path)) return {};
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return {};
  return bytes;
}

}  // namespace hardgrad
