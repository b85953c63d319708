// The cells of a sweep's grid, made one after another, so that a large plan need not be in memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/sweeps/plan.hpp"

namespace hardgrad::sweeps {

/// The first pass builds each (task, model) once to find the supported estimators, and needs the tasks; later passes do not.
class Grid {
 public:
  /// UsageError if the grid has more cells than a sweep may have.
  Grid(const SweepConfig& config, TaskPool& tasks);
  /// f(cell) for each cell in order, with its hash and number. Excluded and repeated ones are left out. UsageError if the
  /// settings of a cell cannot be used.
  void each(const std::function<void(Cell&&)>& f);
  const SweepConfig& config() const { return config_; }
  /// After a pass: of conditions that match nothing, and of settings that make results optimistic.
  std::vector<std::string> warnings() const;

 private:
  /// What estimators need of a (task, model) pair, or why the pair does not work.
  struct Fit {
    std::shared_ptr<const Model<float>> model;
    std::string refusal;
  };
  AxisValues axes_at(std::size_t number) const;
  void check(const Cell& cell);
  const Fit& fit(const Cell& cell, bool posterior);
  void check_files(const Cell& cell);
  const std::string& over_caps(const Cell& cell, int questions);

  const SweepConfig config_;
  TaskPool& tasks_;
  std::size_t total_ = 1;
  std::vector<bool> excluded_, overridden_;
  std::map<std::tuple<std::string, std::string, bool>, Fit> fits_;
  std::set<std::string> optimistic_;
  std::set<std::pair<std::string, std::string>> monitored_;
  std::set<std::tuple<CellData, std::string, std::string, double>> checked_;
  std::map<std::string, std::string> over_caps_;
};

}  // namespace hardgrad::sweeps
