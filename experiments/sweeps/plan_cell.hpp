// One cell of a plan: one run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "experiments/sweeps/config.hpp"

namespace hardgrad::sweeps {

struct Cell {
  AxisValues axes;        ///< always task, model, estimator and seed; then whatever else the grid walks or [tune] tries
  CellSettings settings;  ///< with overrides applied
  std::string hash;       ///< 16 hex digits over axes, settings, precision and root seed
  std::string skip;       ///< why it will not be run; empty if it will
  /// stated_rows of its estimator during training; empty for a skipped cell, or a cost that is not a formula
  std::optional<double> rows = {};
  std::size_t number = 0;   ///< its place in the whole plan, by which shards divide it: known before the cell is
  std::size_t round = 0;    ///< of the search for settings that it is a trial of, from 1; 0: a run that is reported
  std::size_t search = 0;   ///< which of the plan's searches it belongs to
  std::size_t setting = 0;  ///< and which of its settings it has
  double share = 1;         ///< of a reported run's training that it does: less for a trial

  std::uint64_t seed() const { return std::stoull(axes.at("seed")); }
  Spec spec(const std::string& axis) const { return Spec::parse(axes.at(axis)); }
  /// "task=bits estimator=rloo seed=1 ..."
  std::string label() const;
};

}  // namespace hardgrad::sweeps
