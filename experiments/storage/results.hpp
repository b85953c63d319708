// The columns of results.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
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

}  // namespace hardgrad::storage
