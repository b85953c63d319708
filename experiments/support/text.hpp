// Converts arbitrary text for files and terminals, and numbers in texts.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/named.hpp"
#include "core/support/text.hpp"

namespace hardgrad {

/// Bytes of the UTF-8 character that starts at `i`; 0 if none does.
inline std::size_t utf8_length(std::string_view s, std::size_t i) {
  const auto at = [&](std::size_t k) { return k < s.size() ? static_cast<unsigned char>(s[k]) : 0u; };
  const unsigned c = at(i), d = at(i + 1);
  std::size_t length = 0;
  if (c < 0x80)
    length = 1;
  else if (c >= 0xC2 && c <= 0xDF)
    length = 2;
  else if ((c == 0xE0 && d >= 0xA0) || (c > 0xE0 && c < 0xF0 && !(c == 0xED && d > 0x9F)))
    length = 3;
  else if ((c == 0xF0 && d >= 0x90) || (c > 0xF0 && c < 0xF4) || (c == 0xF4 && d < 0x90))
    length = 4;
  for (std::size_t k = 1; k < length; ++k)
    if (i + k >= s.size() || !continues_character(s[i + k])) return 0;
  return length;
}

inline bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto length = utf8_length(s, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

/// Valid UTF-8 without NUL; each invalid byte becomes U+FFFD.
inline std::string valid_utf8(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    const auto length = s[i] == '\0' ? 0 : utf8_length(s, i);
    length ? out.append(s, i, length) : out.append("\xEF\xBF\xBD");
    i += length ? length : 1;
  }
  return out;
}

/// One line that is safe for a terminal: control characters and invalid UTF-8 bytes are escaped (\n, \x1b).
inline std::string printable(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    const auto length = utf8_length(s, i);
    const auto c = static_cast<unsigned char>(s[i]);
    // C1 controls, U+0080 to U+009F, are two bytes of UTF-8; a terminal may interpret them as escapes.
    const bool control = c < 0x20 || c == 0x7F || (length == 2 && c == 0xC2 && static_cast<unsigned char>(s[i + 1]) < 0xA0);
    if (length > 0 && !control) {
      out.append(s, i, length);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      for (std::size_t k = 0; k < (length ? length : 1); ++k) {
        char hex[5];
        std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(s[i + k]));
        out += hex;
      }
    }
    i += length ? length : 1;
  }
  return out;
}

/// The number that the whole text spells, independent of the locale; nothing if it spells none.
template <class N>
std::optional<N> number_of(std::string_view text) {
  N value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

/// The value of an enumeration with this name; nothing if none has it.
template <class E, std::size_t N>
std::optional<E> value_named(std::string_view name, const Named<E> (&names)[N]) {
  for (const auto& row : names)
    if (row.name == name) return row.value;
  return {};
}
/// All names, in order.
template <class E, std::size_t N>
std::vector<std::string> names_of(const Named<E> (&names)[N]) {
  std::vector<std::string> all;
  for (const auto& row : names) all.emplace_back(row.name);
  return all;
}

}  // namespace hardgrad
