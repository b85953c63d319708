// A labelled table in memory: named axes with labels, variables over them, attributes. Every file consists of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hardgrad::storage {

/// The values of a variable or the labels of an axis, row-major.
using Values = std::variant<std::vector<double>, std::vector<float>, std::vector<std::int64_t>, std::vector<std::int32_t>,
                            std::vector<std::uint8_t>, std::vector<std::string>>;
std::size_t size(const Values& values);
/// The labels 0, 1, ..., n - 1.
std::vector<std::int64_t> count_up(std::size_t n);

using Attribute = std::variant<std::string, double, std::int64_t, std::vector<std::string>, std::vector<double>,
                               std::vector<std::int64_t>, std::vector<std::uint8_t>>;
/// Names are unique; a file returns them in alphabetical order.
using Attributes = std::vector<std::pair<std::string, Attribute>>;
/// Null if there is none of that name.
const Attribute* find(const Attributes& attributes, const std::string& name);
/// The text of a string attribute; empty if there is none.
std::string text(const Attributes& attributes, const std::string& name);
/// The number of a numeric attribute; NaN if there is none.
double number(const Attributes& attributes, const std::string& name);

struct Axis {
  std::string name;
  Values labels;
  Attributes attributes = {};
  /// True if the file holds it in its root: a group sees the axes of the groups above it, as in netCDF.
  bool inherited = false;
  std::size_t size() const { return storage::size(labels); }
};

struct Variable {
  std::string name;
  std::vector<std::string> axes;  ///< none: a scalar
  Values values;
  Attributes attributes = {};
};

struct Dataset {
  std::vector<Axis> axes = {};
  std::vector<Variable> variables = {};
  Attributes attributes = {};

  const Axis* axis(const std::string& name) const;
  const Variable* variable(const std::string& name) const;
  /// The values of a variable of that element type; null if there is none or it is of another type.
  template <class V>
  const std::vector<V>* values(const std::string& name) const {
    auto* v = variable(name);
    return v ? std::get_if<std::vector<V>>(&v->values) : nullptr;
  }
  /// The shape of a variable; Bug if an axis of it is missing.
  std::vector<std::size_t> shape(const Variable& variable) const;
  /// Throws Bug if names clash, axes are missing or counts disagree.
  void validate() const;
};

/// Replaces invalid UTF-8, as text from plugins or corpora may have, and removes attributes that are empty lists, which a file
/// does not keep.
void make_valid(Dataset& data);

/// `units` and `long_name`, the usual attributes of variables.
Attributes described(std::string units, std::string long_name);
/// Attributes of a uint8 variable whose values are names: flag_values, flag_meanings.
Attributes flags(std::string long_name, const std::vector<std::string>& meanings);

// Seeds as text: not every reader of a file supports unsigned 64-bit numbers.

/// "0x00000000000000ff"
std::string hex_seed(std::uint64_t seed);
/// Decimal or 0x...; InputError otherwise.
std::uint64_t parse_seed(const std::string& text);

}  // namespace hardgrad::storage
