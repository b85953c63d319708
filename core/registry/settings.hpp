// Specs and settings. `rloo[samples=4]` is a spec; settings are a spec's values, checked against the declared parameters.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hardgrad {

/// A parameter's value. Lists are written `0.6;0.51;0.48`.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

/// The declaration of a parameter.
struct ParameterInfo {
  enum class Type { boolean, integer, real, text, choice, reals };
  std::string name;
  Type type;
  Value fallback;  ///< the default
  std::string help;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false, open_high = false;  ///< true where the bound itself is excluded
  std::vector<std::string> choices = {};     ///< for type `choice`
  bool is_file = false;                      ///< of type `text`: the path of input data, a file or a folder
  /// Of a parameter that was added later: the value that programs without it had. Empty: it was there from the beginning.
  std::optional<Value> absent = {};

  static ParameterInfo flag(std::string name, bool fallback, std::string help);
  static ParameterInfo integer(std::string name, std::int64_t fallback, double low, double high, std::string help);
  static ParameterInfo real(std::string name, double fallback, double low, double high, std::string help);
  /// The temperature of a softmax. At its least value, quotients by it and their squares stay in the range of a float.
  static ParameterInfo temperature(std::string name, double fallback, std::string help);
  static ParameterInfo text(std::string name, std::string fallback, std::string help);
  /// A text: the path of an input file or folder; empty: none.
  static ParameterInfo file(std::string name, std::string help);
  static ParameterInfo choice(std::string name, std::string fallback, std::vector<std::string> choices, std::string help);
  static ParameterInfo reals(std::string name, std::vector<double> fallback, std::string help);
  /// The same declaration with the lower (upper) bound excluded.
  ParameterInfo above() && {
    open_low = true;
    return std::move(*this);
  }
  ParameterInfo below() && {
    open_high = true;
    return std::move(*this);
  }

  /// The same declaration of a parameter that earlier programs did not have: they ran as with this value.
  ParameterInfo absent_means(Value value) && {
    absent = std::move(value);
    return std::move(*this);
  }

  /// "integer", "real", ...
  std::string type_name() const;
  /// "[1, inf)", "additive|dot", "" ...
  std::string range() const;
};

/// The value as it is written in a spec.
std::string to_string(const Value& value);

/// A parsed `name[key=value,...]`; its values are not yet checked.
struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> arguments;
  std::string text;  ///< as given

  /// Throws UsageError with the column of the error.
  static Spec parse(const std::string& text);
  /// This spec with one argument's value replaced or added.
  Spec with(const std::string& key, const std::string& value) const;
};

/// Complete, checked values of all declared parameters.
class Settings {
 public:
  Settings() = default;
  /// Throws UsageError `rloo: samples must be at least 2, got 1`; unknown keys get a suggestion.
  Settings(const std::string& owner, const std::vector<ParameterInfo>& declared, const Spec& spec);

  bool flag(const std::string& name) const { return get<bool>(name); }
  int integer(const std::string& name) const { return static_cast<int>(get<std::int64_t>(name)); }
  double real(const std::string& name) const { return get<double>(name); }
  const std::string& text(const std::string& name) const { return get<std::string>(name); }
  const std::vector<double>& reals(const std::string& name) const { return get<std::vector<double>>(name); }
  /// A list of `per` numbers, where `per` is an integer parameter; a single number is repeated. UsageError for other lengths.
  std::vector<double> reals(const std::string& name, const std::string& per) const;
  const std::map<std::string, Value>& values() const { return values_; }
  /// The spec with all parameters that differ from their defaults, in order of declaration.
  const std::string& canonical() const { return canonical_; }

 private:
  template <class V>
  const V& get(const std::string& name) const;
  std::map<std::string, Value> values_;
  std::string canonical_;
};

/// A line `<prefix><name>=<value>` for each parameter, also at its default: the identity of the entry with these settings, also where
/// defaults change. Parameters at the value that programs without them had are left out, so that an addition changes no line.
std::string identity_lines(const std::string& prefix, const std::vector<ParameterInfo>& declared,
                           const std::map<std::string, Value>& values);

/// The candidate with the least edit distance to `word`, or the only one that begins with it; nothing if none is near.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& candidates);
/// ` (did you mean "rloo"?)`, or the list of candidates: ` (there are: a, b, c)`.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace hardgrad
