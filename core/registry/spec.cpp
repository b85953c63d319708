// Parses `name[key=value,...]` strictly. Every error message names the column.
#include <fmt/format.h>

#include <cctype>

#include "core/registry/settings.hpp"
#include "core/support/error.hpp"
#include "core/support/text.hpp"

namespace hardgrad {
namespace {

bool is_name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.'; }

constexpr std::size_t longest_name = 100;  // messages quote names

// Reads a spec from left to right; `at` is the position, for error messages.
struct SpecReader {
  const std::string& text;
  std::size_t at = 0;

  [[noreturn]] void fail(const std::string& what) const { fail_at(at, what); }
  [[noreturn]] void fail_at(std::size_t position, const std::string& what) const {
    throw UsageError(fmt::format("\"{}\": column {}: {}; a spec is written name[key=value,...]", excerpt(text, position),
                                 position + 1, what));
  }
  bool done() const { return at >= text.size(); }
  /// The UTF-8 character at this position, with all its bytes.
  std::string character() const {
    std::size_t end = at + 1;
    while (end < text.size() && continues_character(text[end])) ++end;
    return text.substr(at, end - at);
  }
  void skip_space() {
    while (!done() && (text[at] == ' ' || text[at] == '\t')) ++at;
  }
  std::string name(const char* what) {
    skip_space();
    const auto start = at;
    while (!done() && is_name_character(text[at])) ++at;
    if (at == start) fail(done() ? fmt::format("expected {}", what) : fmt::format("expected {}, got '{}'", what, character()));
    auto result = text.substr(start, at - start);
    if (result.size() > longest_name)
      fail_at(start, fmt::format("expected {}, got a word of {} characters", what, result.size()));
    skip_space();
    return result;
  }
  std::string value() {
    skip_space();
    if (!done() && text[at] == '"') return quoted();
    const auto start = at;
    while (!done() && text[at] != ',' && text[at] != ']') {
      if (text[at] == '[') fail("'[' inside a value: put the value in double quotes");
      ++at;
    }
    std::string result(trimmed(std::string_view(text).substr(start, at - start)));
    if (result.empty()) fail_at(start, "expected a value");
    return result;
  }
  std::string quoted() {
    const auto start = at++;
    std::string result;
    while (!done() && text[at] != '"') {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      result += text[at++];
    }
    if (done()) fail_at(start, "the closing quote is missing");
    ++at;
    skip_space();
    return result;
  }
};

bool needs_quotes(const std::string& value) { return value.find_first_of("[],\"\\ ") != std::string::npos; }

std::string quoted(const std::string& value) {
  if (!needs_quotes(value)) return value;
  std::string text = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

}  // namespace

Spec Spec::with(const std::string& key, const std::string& value) const {
  std::string all;
  for (const auto& [name, old] : arguments)
    if (name != key) all += name + "=" + quoted(old) + ",";
  return parse(name + "[" + all + key + "=" + quoted(value) + "]");
}

Spec Spec::parse(const std::string& text) {
  SpecReader in{text};
  Spec spec;
  spec.text = text;
  spec.name = in.name("a name");
  if (in.done()) return spec;
  if (text[in.at] != '[') in.fail(fmt::format("expected '[', got '{}'", in.character()));
  ++in.at;
  in.skip_space();
  if (in.done() || text[in.at] != ']') {
    while (true) {
      in.skip_space();
      const auto start = in.at;
      auto key = in.name("a parameter's name");
      for (const auto& [other, value] : spec.arguments)
        if (other == key) in.fail_at(start, fmt::format("{} is given twice", key));
      if (in.done() || text[in.at] != '=') in.fail(fmt::format("expected '=' after {}", key));
      ++in.at;
      auto value = in.value();
      spec.arguments.emplace_back(std::move(key), std::move(value));
      if (in.done()) in.fail("missing ']'");
      if (text[in.at] == ']') break;
      if (text[in.at] != ',') in.fail(fmt::format("expected ',' or ']', got '{}'", in.character()));
      ++in.at;
    }
  }
  ++in.at;
  in.skip_space();
  if (!in.done()) in.fail("unexpected text after ']'");
  return spec;
}

}  // namespace hardgrad
