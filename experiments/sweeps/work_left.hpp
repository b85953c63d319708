// The remaining time of a run, from the times of finished cells and the progress of running ones.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "experiments/sweeps/durations.hpp"

namespace hardgrad::sweeps {

/// Receives events of cells by name, with their kind, and times in seconds of a common clock. Thread-safe.
class WorkLeft {
 public:
  /// A cell to run; `work` as in Durations::Left.
  void expect(const std::string& cell, const std::string& kind, double work = 1);
  /// Further work that becomes known when other cells finish; each call replaces the earlier value.
  void to_come(Durations::Left work);
  /// The cell has run for `seconds` and will run for `left` more.
  void at_work(const std::string& cell, double seconds, double left, double now);
  /// The cell stopped before its end.
  void given_up(const std::string& cell);
  /// The cell is finished, or will not be run.
  void over(const std::string& cell);
  /// `work` of this kind took `seconds`.
  void took(const std::string& kind, double seconds, double work = 1);

  /// Seconds of work, one cell after another; empty while too little is known.
  std::optional<double> one_by_one(double now) const;
  /// Seconds until all cells are finished with `jobs` in parallel: at least the longest of the running ones.
  std::optional<double> together(int jobs, double now) const;

 private:
  struct Working {
    double seconds, left, told;
    double rest(double now) const { return std::max(0.0, left - (now - told)); }
  };
  struct Expected {
    std::string kind;
    double work;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Expected> cells_;  // unfinished ones
  Durations::Left to_come_;
  std::map<std::string, Working> working_;
  Durations durations_;
};

}  // namespace hardgrad::sweeps
