#include "experiments/sweeps/toml_source.hpp"

#include <sstream>

#include "experiments/support/utf8.hpp"

namespace hardgrad::sweeps {
namespace {

void flatten(const toml::table& table, const std::string& prefix, TomlSource::Flat& out) {
  for (const auto& [key, node] : table) {
    auto path = prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
    if (const auto* inner = node.as_table())
      flatten(*inner, path, out);
    else
      out.emplace_back(std::move(path), &node);
  }
}

}  // namespace

std::string described(const toml::node& node) {
  if (const auto* v = node.as_string()) return fmt::format("\"{}\"", v->get());
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  std::ostringstream text;
  node.visit([&](const auto& n) {
    if constexpr (toml::is_value<decltype(n)>) text << n;
  });
  return text.str();
}

void TomlSource::set(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw UsageError(fmt::format("--set: expected a.b=VALUE, got \"{}\"", text));
  const auto path = text.substr(0, equals), value = text.substr(equals + 1);
  if (!is_utf8(text)) throw UsageError(fmt::format("--set {}: must be UTF-8, got {}", path, text));
  std::vector<std::string> parts;
  std::istringstream in(path);
  for (std::string part; std::getline(in, part, '.');) parts.push_back(part);
  if (parts[0] == "zip" || parts[0] == "exclude" || parts[0] == "override")
    throw UsageError(fmt::format("--set {}: [[{}]] blocks can only be changed in the file", path, parts[0]));

  toml::table parsed;  // a value that does not parse as TOML is a text: rloo[samples=4] needs no quotes
  try {
    parsed = toml::parse("x = " + value);
    if (parsed.size() != 1) parsed.clear();
  } catch (const toml::parse_error&) {
  }
  if (parsed.empty()) parsed.insert("x", value);

  sets_.push_back(path);
  auto* table = &root_;
  for (std::size_t i = 0;; ++i) {
    std::string rest;
    for (std::size_t j = i; j < parts.size(); ++j) rest += (j > i ? "." : "") + parts[j];
    const bool last = i + 1 == parts.size();
    if (last || table->contains(rest)) {
      // A copied node has no position in the file.
      parsed.get("x")->visit([&](const auto& node) { table->insert_or_assign(rest, node); });
      return;
    }
    if (!table->contains(parts[i])) table->insert(parts[i], toml::table{});
    auto* next = table->get(parts[i])->as_table();
    if (!next) throw UsageError(fmt::format("--set {}: {} is not a section", path, parts[i]));
    table = next;
  }
}

std::string TomlSource::where(const toml::source_region& source, const std::string& path) const {
  if (source.begin.line) return fmt::format("{}:{}:{}", file_, source.begin.line, source.begin.column);
  for (const auto& set : sets_)
    if (set == path || set.starts_with(path + ".") || path.starts_with(set + ".")) return "--set " + set;
  return file_;
}

void TomlSource::fail(const toml::source_region& source, const std::string& path, const std::string& what) const {
  throw UsageError(fmt::format("{}: {}: {}", where(source, path), path, what));
}

TomlSource::Flat TomlSource::leaves(const toml::table& table) {
  Flat found;
  flatten(table, "", found);
  return found;
}

const toml::table& TomlSource::table_of(const toml::node& node, const std::string& path) const {
  if (const auto* table = node.as_table()) return *table;
  fail(node, path, "must be a table, got " + described(node));
}

std::vector<const toml::table*> TomlSource::tables_of(const std::string& key) const {
  std::vector<const toml::table*> result;
  const auto* node = root_.get(key);
  if (!node) return result;
  const auto* array = node->as_array();
  if (!array) fail(*node, key, fmt::format("must be written [[{}]], one block each", key));
  for (const auto& item : *array) result.push_back(&table_of(item, key));
  return result;
}

}  // namespace hardgrad::sweeps
