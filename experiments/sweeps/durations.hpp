// What cells cost, learnt from those that are over: how long the others will take.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "experiments/sweeps/config.hpp"

namespace hardgrad::sweeps {

/// Cells of a kind cost alike: those that differ in the seed alone.
std::string kind_of(const AxisValues& axes);

class Durations {
 public:
  /// Work still to be done, by kind: 1 for a cell, less for a trial that trains for a share of a cell's time.
  using Left = std::map<std::string, double>;

  /// So much work of this kind took so many seconds.
  void add(const std::string& kind, double seconds, double work = 1);
  /// Seconds of work, one cell after another. A kind of which none is over is taken for the mean kind of its task.
  /// Nothing while more than half of the work is of tasks of which nothing is known.
  std::optional<double> seconds(const Left& left) const;

 private:
  struct Mean {
    double sum = 0, weight = 0;
    double value() const { return sum / weight; }
  };
  std::map<std::string, Mean> kinds_;
};

}  // namespace hardgrad::sweeps
