// The columns of results.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "experiments/storage/cell.hpp"
#include "experiments/storage/dataset.hpp"

namespace hardgrad::storage {

/// The facts of a variable from the table of quantities, as attributes; Bug if it has no row for it. `name`: within its family.
Attributes facts(const std::string& variable, const std::string& name = {});

/// The labels of a result's axes and the names of its columns.
struct Labels {
  std::set<std::int64_t> steps, evaluations, measurements;
  std::set<std::string> groups, sites, targets, axes, costs, losses, metrics, intervals;
  std::map<std::string, std::vector<training::MetricFacts>> facts;  ///< by metric: distinct ones

  /// Adds those of a record.
  void add(const CellRecord& record);
};

/// The columns of results: every number of the records over axes run, step, evaluation_step, measurement_step,
/// parameter_group, target, bound; the records are runs from `first` on. Axes without labels are omitted, with the variables
/// over them.
Dataset columns(const std::vector<CellRecord>& records, const Labels& labels, std::size_t first = 0);

// Builds the columns of results: axes of labels, then variables over runs and axes. Only for results.cpp, which fills them.

using Records = std::vector<CellRecord>;

/// A dataset under construction; one row per run.
class ColumnBuilder {
 public:
  /// The runs from `first` on.
  ColumnBuilder(std::size_t runs, std::size_t first) : runs_(runs) {
    auto numbers = count_up(runs);
    for (auto& number : numbers) number += static_cast<std::int64_t>(first);
    data_.axes.push_back({"run", std::move(numbers), {{"long_name", "number of the run, in the plan's order"}}});
  }

  /// A column over run and `inner` with its facts.
  template <class V>
  std::vector<V>* column(const std::string& name, std::vector<std::string> inner, V fill) {
    return column(name, std::move(inner), fill, facts(name));
  }
  /// An axis of distinct labels, sorted if `place` is used; omitted if there are none.
  template <template <class...> class C, class L>
  void axis(const std::string& name, const C<L>& labels, const std::string& long_name) {
    if (!labels.empty()) data_.axes.push_back({name, std::vector<L>(labels.begin(), labels.end()), {{"long_name", long_name}}});
  }

  /// A column over run and `inner`, initialised to `fill`; null if an axis has no label. The pointer is valid until the next
  /// column.
  template <class V>
  std::vector<V>* column(const std::string& name, std::vector<std::string> inner, V fill, Attributes attributes) {
    std::size_t count = runs_;
    for (const auto& a : inner) {
      auto* known = data_.axis(a);
      if (!known) return nullptr;
      count *= known->size();
    }
    inner.insert(inner.begin(), "run");
    data_.variables.push_back({name, std::move(inner), std::vector<V>(count, fill), std::move(attributes)});
    return &std::get<std::vector<V>>(data_.variables.back().values);
  }

  /// The position of a label in the axis.
  template <class L>
  std::size_t place(const std::string& axis, const L& label) const {
    const auto& labels = std::get<std::vector<L>>(data_.axis(axis)->labels);
    return static_cast<std::size_t>(std::lower_bound(labels.begin(), labels.end(), label) - labels.begin());
  }
  std::size_t length(const std::string& axis) const {
    auto* known = data_.axis(axis);
    return known ? known->size() : 0;
  }
  bool taken(const std::string& name) const { return data_.axis(name) || data_.variable(name); }
  Dataset take() { return std::move(data_); }

 private:
  std::size_t runs_;
  Dataset data_;
};

/// A valid variable name: characters other than letters, digits, "_", "." and "-" become "_".
inline std::string safe_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-') c = '_';
  return name;
}

/// The attributes of a variable whose values are names.
inline Attributes flags_of(const std::string& variable, const std::vector<std::string>& meanings) {
  return flags(text(facts(variable), "long_name"), meanings);
}

/// The attributes, and the map and key that the column belongs to.
inline Attributes keyed(Attributes attributes, const std::string& family, const std::string& key) {
  attributes.emplace_back("family", family);
  attributes.emplace_back("key", key);
  return attributes;
}

}  // namespace hardgrad::storage
