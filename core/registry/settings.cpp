// Checks specs against declared parameters. Every error message names the accepted values.
#include "core/registry/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/support/error.hpp"
#include "core/support/text.hpp"

namespace hardgrad {
namespace {

using Type = ParameterInfo::Type;

// The text as a finite number; nothing if the whole text is not one.
template <class N>
std::optional<N> number(std::string_view text) {
  N value{};
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  if (text.empty() || text.front() == '+') return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  if constexpr (std::is_floating_point_v<N>)
    if (!std::isfinite(value)) return {};
  return value;
}

std::string number_text(double value) { return fmt::format("{}", value); }

// Quotes a text that the parser would not read back unquoted.
std::string quoted_if_needed(const std::string& text) {
  const bool bare = text.find_first_of(",[]\"") == std::string::npos && trimmed(text) == text;
  if (bare) return text;
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string what_would_do(const ParameterInfo& info) {
  switch (info.type) {
    case Type::boolean: return "true or false";
    case Type::integer: return "an integer";
    case Type::real: return "a finite number";
    case Type::text: return "text";
    case Type::choice: return "one of " + fmt::format("{}", fmt::join(info.choices, ", "));
    case Type::reals: return "finite numbers separated by ';'";
  }
  return {};
}

void check_range(const std::string& owner, const ParameterInfo& info, double value, const std::string& given) {
  const auto refuse = [&](const char* relation, double bound) {
    throw UsageError(
        fmt::format("{}: {} must be {} {}, got {}", owner, info.name, relation, number_text(bound), excerpt(given)));
  };
  if (info.open_low ? value <= info.low && std::isfinite(info.low) : value < info.low)
    refuse(info.open_low ? "above" : "at least", info.low);
  if (info.open_high ? value >= info.high && std::isfinite(info.high) : value > info.high)
    refuse(info.open_high ? "below" : "at most", info.high);
}

Value checked(const std::string& owner, const ParameterInfo& info, const std::string& text) {
  const auto wrong = [&]() -> UsageError {
    auto hint = info.type == Type::choice && nearest(text, info.choices) ? did_you_mean(text, info.choices) : "";
    return UsageError(
        fmt::format("{}: {} must be {}, got \"{}\"{}", owner, info.name, what_would_do(info), excerpt(text), hint));
  };
  switch (info.type) {
    case Type::boolean:
      if (text != "true" && text != "false") throw wrong();
      return text == "true";
    case Type::integer: {
      const auto value = number<std::int64_t>(text);
      if (!value) throw wrong();
      auto within = info;  // Settings::integer returns an int
      within.low = std::max(within.low, static_cast<double>(std::numeric_limits<int>::min()));
      within.high = std::min(within.high, static_cast<double>(std::numeric_limits<int>::max()));
      check_range(owner, within, static_cast<double>(*value), text);
      return *value;
    }
    case Type::real: {
      const auto value = number<double>(text);
      if (!value) throw wrong();
      check_range(owner, info, *value, text);
      return *value;
    }
    case Type::text: return text;
    case Type::choice:
      if (std::find(info.choices.begin(), info.choices.end(), text) == info.choices.end()) throw wrong();
      return text;
    case Type::reals: {
      std::vector<double> values;
      for (std::size_t at = 0; at <= text.size();) {
        const auto end = std::min(text.find(';', at), text.size());
        const std::string item(trimmed(std::string_view(text).substr(at, end - at)));
        const auto value = number<double>(item);
        if (!value) throw wrong();
        check_range(owner, info, *value, item);
        values.push_back(*value);
        at = end + 1;
      }
      return values;
    }
  }
  throw Bug("unknown parameter type");
}

}  // namespace

ParameterInfo ParameterInfo::flag(std::string name, bool fallback, std::string help) {
  return {.name = std::move(name), .type = Type::boolean, .fallback = fallback, .help = std::move(help)};
}
ParameterInfo ParameterInfo::integer(std::string name, std::int64_t fallback, double low, double high, std::string help) {
  return {
      .name = std::move(name), .type = Type::integer, .fallback = fallback, .help = std::move(help), .low = low, .high = high};
}
ParameterInfo ParameterInfo::real(std::string name, double fallback, double low, double high, std::string help) {
  return {.name = std::move(name), .type = Type::real, .fallback = fallback, .help = std::move(help), .low = low, .high = high};
}
ParameterInfo ParameterInfo::temperature(std::string name, double fallback, std::string help) {
  return real(std::move(name), fallback, 1e-6, 1e6, std::move(help));
}
ParameterInfo ParameterInfo::text(std::string name, std::string fallback, std::string help) {
  return {.name = std::move(name), .type = Type::text, .fallback = std::move(fallback), .help = std::move(help)};
}
ParameterInfo ParameterInfo::file(std::string name, std::string help) {
  auto result = text(std::move(name), "", std::move(help));
  result.is_file = true;
  return result;
}
ParameterInfo ParameterInfo::choice(std::string name, std::string fallback, std::vector<std::string> choices,
                                    std::string help) {
  return {.name = std::move(name),
          .type = Type::choice,
          .fallback = std::move(fallback),
          .help = std::move(help),
          .choices = std::move(choices)};
}
ParameterInfo ParameterInfo::reals(std::string name, std::vector<double> fallback, std::string help) {
  return {.name = std::move(name), .type = Type::reals, .fallback = std::move(fallback), .help = std::move(help)};
}

std::string ParameterInfo::type_name() const {
  switch (type) {
    case Type::boolean: return "boolean";
    case Type::integer: return "integer";
    case Type::real: return "real";
    case Type::text: return "text";
    case Type::choice: return "choice";
    case Type::reals: return "reals";
  }
  throw Bug("unknown parameter type");
}

std::string ParameterInfo::range() const {
  if (type == Type::choice) return fmt::format("{}", fmt::join(choices, "|"));
  if (type == Type::boolean || type == Type::text) return {};
  std::string several = type == Type::reals ? "separated by ;" : "";
  if (type == Type::reals && std::isinf(low) && std::isinf(high)) return several;
  return several + (several.empty() ? "" : " in ") +
         fmt::format("{}{}, {}{}", open_low || std::isinf(low) ? '(' : '[', number_text(low), number_text(high),
                     open_high || std::isinf(high) ? ')' : ']');
}

std::string to_string(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::string>) {
          return quoted_if_needed(v);
        } else if constexpr (std::is_same_v<V, std::vector<double>>) {
          std::string result;
          for (double x : v) result.append(result.empty() ? "" : ";").append(number_text(x));
          return result;
        } else {
          return fmt::format("{}", v);
        }
      },
      value);
}

Settings::Settings(const std::string& owner, const std::vector<ParameterInfo>& declared, const Spec& spec) {
  std::vector<std::string> names;
  for (const auto& info : declared) {
    names.push_back(info.name);
    values_[info.name] = info.fallback;
  }
  std::map<std::string, bool> seen;
  for (const auto& [key, text] : spec.arguments) {
    const auto info = std::find_if(declared.begin(), declared.end(), [&, &key = key](const auto& d) { return d.name == key; });
    if (info == declared.end())
      throw UsageError(fmt::format("{}: unknown parameter \"{}\"{}", owner, key,
                                   names.empty() ? " (it takes none)" : did_you_mean(key, names)));
    if (!seen.emplace(key, true).second) throw UsageError(fmt::format("{}: {} is given twice", owner, key));
    values_[key] = checked(owner, *info, text);
  }
  std::string changed;
  for (const auto& info : declared)
    if (values_[info.name] != info.fallback)
      changed += fmt::format("{}{}={}", changed.empty() ? "" : ",", info.name, to_string(values_[info.name]));
  canonical_ = spec.name + (changed.empty() ? "" : "[" + changed + "]");
}

std::vector<double> Settings::reals(const std::string& name, const std::string& per) const {
  auto values = reals(name);
  const auto count = static_cast<std::size_t>(integer(per));
  if (values.size() == 1) values.resize(count, values[0]);
  if (values.size() != count)
    throw UsageError(fmt::format("{}: {} must have 1 or {}={} numbers, got {}", canonical_.substr(0, canonical_.find('[')),
                                 name, per, count, values.size()));
  return values;
}

std::string identity_lines(const std::string& prefix, const std::vector<ParameterInfo>& declared,
                           const std::map<std::string, Value>& values) {
  std::string lines;
  for (const auto& info : declared)
    if (const auto& value = values.at(info.name); !info.absent || value != *info.absent)
      lines += fmt::format("{}{}={}\n", prefix, info.name, to_string(value));
  return lines;
}

template <class V>
const V& Settings::get(const std::string& name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) throw Bug("the parameter " + name + " is not declared");
  if (const auto* value = std::get_if<V>(&it->second)) return *value;
  throw Bug("the parameter " + name + " has another type");
}
template const bool& Settings::get<bool>(const std::string&) const;
template const std::int64_t& Settings::get<std::int64_t>(const std::string&) const;
template const double& Settings::get<double>(const std::string&) const;
template const std::string& Settings::get<std::string>(const std::string&) const;
template const std::vector<double>& Settings::get<std::vector<double>>(const std::string&) const;

}  // namespace hardgrad
