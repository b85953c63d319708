// Predicts the time of cells from finished cells.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "experiments/sweeps/config.hpp"

namespace hardgrad::sweeps {

/// The kind of a cell: cells that differ only in the seed have similar costs.
std::string kind_of(const AxisValues& axes);

class Durations {
 public:
  /// Remaining work by kind: 1 for a cell, less for a trial with a fraction of a cell's training.
  using Left = std::map<std::string, double>;

  /// Records that `work` of this kind took `seconds`.
  void add(const std::string& kind, double seconds, double work = 1);
  /// Seconds of work, one cell after another. A kind without finished cells counts as the mean kind of its task. Empty while
  /// more than half of the work belongs to tasks without finished cells.
  std::optional<double> seconds(const Left& left) const;

 private:
  struct Mean {
    double sum = 0, weight = 0;
    double value() const { return sum / weight; }
  };
  std::map<std::string, Mean> kinds_;
};

}  // namespace hardgrad::sweeps
