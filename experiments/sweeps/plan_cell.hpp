// One cell of a plan: one run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "experiments/sweeps/config.hpp"

namespace hardgrad::sweeps {

struct Cell {
  AxisValues axes;        ///< always task, model, estimator and seed; then the other axes of the grid and of [tune]
  CellSettings settings;  ///< with overrides applied
  std::string hash;       ///< 16 hex digits over its identity
  std::string data_hash;  ///< Task::data_hash of its data
  std::string skip;       ///< why it is skipped; empty if it is run
  /// stated_rows of its estimator during training; empty for a skipped cell, or if the cost is not a formula
  std::optional<double> rows = {};
  std::size_t number = 0;   ///< its position in the whole plan, which selects its shard; known before the cell is
  std::size_t round = 0;    ///< of a trial: its round in the search for settings, from 1; 0: a reported run
  std::size_t search = 0;   ///< index of its search in the plan
  std::size_t setting = 0;  ///< index of its setting in the search
  double share = 1;         ///< fraction of a reported run's training: less for a trial

  std::uint64_t seed() const { return std::stoull(axes.at("seed")); }
  Spec spec(const std::string& axis) const { return Spec::parse(axes.at(axis)); }
  /// "task=bits estimator=rloo seed=1 ..."
  std::string label() const;
};

}  // namespace hardgrad::sweeps
