// Numbers in texts.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace hardgrad {

/// The number that the whole text spells, independent of the locale; nothing if it spells none.
template <class N>
std::optional<N> number_of(std::string_view text) {
  N value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace hardgrad
