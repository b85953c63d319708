// Labelled tables: look-ups and validation. Seeds as text, and back.
#include "experiments/storage/dataset.hpp"

#include <fmt/format.h>

#include <exception>
#include <limits>
#include <numeric>
#include <set>

#include "core/support/error.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::storage {

std::size_t size(const Values& values) {
  return std::visit([](const auto& v) { return v.size(); }, values);
}

std::vector<std::int64_t> count_up(std::size_t n) {
  std::vector<std::int64_t> labels(n);
  std::iota(labels.begin(), labels.end(), 0);
  return labels;
}

const Attribute* find(const Attributes& attributes, const std::string& name) {
  for (const auto& [key, value] : attributes)
    if (key == name) return &value;
  return nullptr;
}

std::string text(const Attributes& attributes, const std::string& name) {
  auto* entry = find(attributes, name);
  auto* value = entry ? std::get_if<std::string>(entry) : nullptr;
  return value ? *value : "";
}

double number(const Attributes& attributes, const std::string& name) {
  if (auto* entry = find(attributes, name)) {
    if (auto* real = std::get_if<double>(entry)) return *real;
    if (auto* whole = std::get_if<std::int64_t>(entry)) return static_cast<double>(*whole);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

const Axis* Dataset::axis(const std::string& name) const {
  for (const auto& a : axes)
    if (a.name == name) return &a;
  return nullptr;
}

const Variable* Dataset::variable(const std::string& name) const {
  for (const auto& v : variables)
    if (v.name == name) return &v;
  return nullptr;
}

std::vector<std::size_t> Dataset::shape(const Variable& variable) const {
  std::vector<std::size_t> result;
  for (const auto& name : variable.axes) {
    auto* a = axis(name);
    if (!a) throw Bug("variable " + variable.name + " has an axis " + name + " that is not declared");
    result.push_back(a->size());
  }
  return result;
}

void Dataset::validate() const {
  std::set<std::string> names;
  const auto claim = [&](const std::string& name) {
    if (name.empty() || name == "." || name.find('/') != std::string::npos)
      throw Bug("\"" + name + "\" cannot be a name in a file");
    if (!names.insert(name).second) throw Bug("two things are called " + name + " in one group");
  };
  for (const auto& a : axes) {
    claim(a.name);
    if (a.size() == 0) throw Bug("axis " + a.name + " is empty");
  }
  for (const auto& v : variables) {
    claim(v.name);
    std::size_t count = 1;
    for (auto extent : shape(v)) count *= extent;
    if (count != size(v.values))
      throw Bug("variable " + v.name + " holds " + std::to_string(size(v.values)) + " values for " + std::to_string(count) +
                " places");
    if (std::set<std::string>(v.axes.begin(), v.axes.end()).size() != v.axes.size())
      throw Bug("variable " + v.name + " has one axis twice");
  }
}

namespace {

void clean(std::string& s) { s = valid_utf8(s); }
template <class... V>
void clean(std::variant<V...>& value) {
  std::visit(
      [](auto& v) {
        using E = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<E, std::string>)
          clean(v);
        else if constexpr (std::is_same_v<E, std::vector<std::string>>)
          for (auto& s : v) clean(s);
      },
      value);
}
void clean(Attributes& attributes) {
  for (auto& [name, value] : attributes) clean(value);
  std::erase_if(attributes, [](const auto& a) {
    return std::visit(
        [](const auto& v) {
          using V = std::decay_t<decltype(v)>;
          if constexpr (std::is_arithmetic_v<V> || std::is_same_v<V, std::string>)
            return false;
          else
            return v.empty();
        },
        a.second);
  });
}

}  // namespace

void make_valid(Dataset& data) {
  clean(data.attributes);
  for (auto& axis : data.axes) {
    clean(axis.labels);
    clean(axis.attributes);
  }
  for (auto& variable : data.variables) {
    clean(variable.values);
    clean(variable.attributes);
  }
}

Attributes described(std::string units, std::string long_name) {
  return {{"units", std::move(units)}, {"long_name", std::move(long_name)}};
}

Attributes flags(std::string long_name, const std::vector<std::string>& meanings) {
  std::vector<std::uint8_t> values;
  std::string words;
  for (const auto& meaning : meanings) {
    values.push_back(static_cast<std::uint8_t>(values.size()));
    words += (words.empty() ? "" : " ") + meaning;
  }
  return {{"long_name", std::move(long_name)}, {"flag_values", values}, {"flag_meanings", words}};
}

std::string hex_seed(std::uint64_t seed) { return fmt::format("0x{:016x}", seed); }

std::uint64_t parse_seed(const std::string& text) {
  std::size_t used = 0;
  std::uint64_t seed = 0;
  try {
    const bool hexadecimal = text.rfind("0x", 0) == 0;
    seed = std::stoull(text, &used, hexadecimal ? 16 : 10);
  } catch (const std::exception&) {
    used = 0;
  }
  if (text.empty() || text[0] == '-' || used != text.size())
    throw InputError("seed \"" + text + "\" is not a whole number from 0 to 2^64 - 1");
  return seed;
}

}  // namespace hardgrad::storage
