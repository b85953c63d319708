// Typed settings: a struct for each entry. One line declares a setting and reads it into its member.
//
//   struct Config {
//     int samples = 4;                     // the member's initial value is the default
//     Feed feed = Feed::teacher;
//
//     void declare(Fields& field) {
//       field(samples, "samples", 1, 1e6, "independent samples per example");
//       field(feed, "feed", feeds, "the input of the decoder");
//     }
//   };
//
// `declared<Config>()` lists the settings; `read<Config>(settings)` gives a Config with their values. `declare` must not depend on
// the values.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/registry/settings.hpp"
#include "core/support/error.hpp"
#include "core/support/named.hpp"

namespace hardgrad {

/// A setting that was just declared, for what few settings need.
template <class M>
class Field {
 public:
  Field(ParameterInfo* info, const void* rows, Value (*value_of)(const void* rows, const M&))
      : info_(info), rows_(rows), value_of_(value_of) {}
  /// Excludes the lower (upper) bound.
  Field above() const {
    if (info_) info_->open_low = true;
    return *this;
  }
  Field below() const {
    if (info_) info_->open_high = true;
    return *this;
  }
  /// Of a setting that earlier programs did not have: they ran as with this value.
  Field absent_means(const M& value) const {
    if (info_) info_->absent = value_of_(rows_, value);
    return *this;
  }

 private:
  ParameterInfo* info_;  // null while values are read
  const void* rows_;     // the names of a choice
  Value (*value_of_)(const void*, const M&);
};

/// Given to the `declare` of a Config: collects its declarations, or sets its members.
class Fields {
 public:
  Fields() = default;
  explicit Fields(const Settings& settings) : settings_(&settings) {}

  Field<bool> operator()(bool& member, std::string name, std::string help);
  Field<double> operator()(double& member, std::string name, double low, double high, std::string help);
  Field<std::string> operator()(std::string& member, std::string name, std::string help);
  /// A list. `per`: an integer setting, the length of the list; a single number is repeated.
  Field<std::vector<double>> operator()(std::vector<double>& member, std::string name, std::string help,
                                        const std::string& per = "");
  template <std::integral I>
  Field<I> operator()(I& member, std::string name, double low, double high, std::string help) {
    auto value = static_cast<std::int64_t>(member);
    auto* const info = integer(value, ParameterInfo::integer(std::move(name), value, low, high, std::move(help)));
    member = static_cast<I>(value);
    return {info, nullptr, [](const void*, const I& v) -> Value { return static_cast<std::int64_t>(v); }};
  }
  /// A value of an enumeration.
  template <class E, std::size_t N>
  Field<E> operator()(E& member, std::string name, const Named<E> (&names)[N], std::string help) {
    return chosen(member, std::move(name), names, std::move(help), [](const Named<E>& row) { return row.value; });
  }
  /// A row of a table, by the row's `name`.
  template <class Row, std::size_t N>
  Field<const Row*> operator()(const Row*& member, std::string name, const Row (&rows)[N], std::string help) {
    return chosen(member, std::move(name), rows, std::move(help), [](const Row& row) { return &row; });
  }
  /// The temperature of a softmax.
  Field<double> temperature(double& member, std::string name, std::string help);
  /// The path of an input file or folder; empty: none.
  Field<std::string> file(std::string& member, std::string name, std::string help);

  std::vector<ParameterInfo> declared() && { return std::move(declared_); }

 private:
  ParameterInfo* add(ParameterInfo info) { return &declared_.emplace_back(std::move(info)); }
  ParameterInfo* integer(std::int64_t& value, ParameterInfo info);
  ParameterInfo* choice(std::size_t& index, std::string name, std::vector<std::string> names, std::string help);

  template <class M, class Row, std::size_t N, class ValueOf>
  Field<M> chosen(M& member, std::string name, const Row (&rows)[N], std::string help, ValueOf value_of) {
    std::vector<std::string> names;
    std::size_t index = N;
    for (std::size_t i = 0; i < N; ++i) {
      names.emplace_back(rows[i].name);
      if (value_of(rows[i]) == member) index = i;
    }
    auto* const info = choice(index, std::move(name), std::move(names), std::move(help));
    member = value_of(rows[index]);
    return {info, rows, [](const void* table, const M& value) -> Value {
              for (const auto& row : *static_cast<const Row(*)[N]>(table))
                if (ValueOf()(row) == value) return std::string(row.name);
              throw Bug("a value of a choice has no name");
            }};
  }

  const Settings* settings_ = nullptr;  // null: declarations are collected
  std::vector<ParameterInfo> declared_;
};

/// A struct with `void declare(Fields&)`.
template <class Config>
concept Declared = requires(Config config, Fields fields) {
  config.declare(fields);
};

/// The settings of a Config, in order.
template <Declared Config>
std::vector<ParameterInfo> declared() {
  Config config;
  Fields fields;
  config.declare(fields);
  return std::move(fields).declared();
}

/// A Config with these values. Other settings are ignored.
template <Declared Config>
Config read(const Settings& settings) {
  Config config;
  Fields fields(settings);
  config.declare(fields);
  return config;
}

/// Settings as the argument of a function or constructor, which takes them as they are or as its Config.
struct SettingsArgument {
  const Settings& settings;
  operator const Settings&() const { return settings; }
  template <Declared Config>
  operator Config() const {
    return read<Config>(settings);
  }
};

/// A function of an entry's settings: of `const Settings&`, or of the entry's `const Config&`; then of the other arguments.
template <class Result, class... Arguments>
class OfSettings {
 public:
  OfSettings(std::nullptr_t = nullptr) {}
  template <class Config>
  OfSettings(Result (*function)(const Config&, Arguments...))
      : function_(reinterpret_cast<void (*)()>(function)), call_(function ? call<Config> : nullptr) {}
  template <class Lambda>
  requires std::is_class_v<Lambda> && requires(Lambda lambda) { +lambda; }
  OfSettings(Lambda lambda) : OfSettings(+lambda) {}

  explicit operator bool() const { return call_ != nullptr; }
  Result operator()(const Settings& settings, Arguments... arguments) const { return call_(function_, settings, arguments...); }

 private:
  template <class Config>
  static Result call(void (*function)(), const Settings& settings, Arguments... arguments) {
    return reinterpret_cast<Result (*)(const Config&, Arguments...)>(function)(SettingsArgument{settings}, arguments...);
  }
  void (*function_)() = nullptr;
  Result (*call_)(void (*)(), const Settings&, Arguments...) = nullptr;
};

}  // namespace hardgrad
