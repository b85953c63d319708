// The remaining time of a run, from the times of finished cells and the progress of running ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "experiments/sweeps/config.hpp"

namespace hardgrad::sweeps {

/// The kind of a cell: cells that differ only in the seed have similar costs.
std::string kind_of(const AxisValues& axes);

class Durations {
 public:
  /// Remaining work by kind: 1 for a cell, less for a trial with a fraction of a cell's training.
  using WorkByKind = std::map<std::string, double>;

  /// Records that `work` of this kind took `seconds`.
  void add(const std::string& kind, double seconds, double work = 1);
  /// A trial of this kind says that a cell takes `seconds`. It counts for its task, until a cell of the task is finished.
  void tried(const std::string& kind, double seconds);
  /// Whether cells or a trial of the task of this kind are known.
  bool know(const std::string& kind) const;
  /// Seconds of work, one cell after another. A kind without finished cells counts as the mean kind of its task. Empty while
  /// more than half of the work belongs to tasks without finished cells and trials.
  std::optional<double> seconds(const WorkByKind& left) const;

 private:
  struct Mean {
    double sum = 0, weight = 0;
    double value() const { return sum / weight; }
  };
  std::map<std::string, Mean> kinds_;
  std::map<std::string, double> tried_;  // by task
};

/// Receives events of cells by name, with their kind, and times in seconds of a common clock. Thread-safe.
class RemainingWork {
 public:
  /// A cell to run; `work` as in Durations::WorkByKind.
  void expect(const std::string& cell, const std::string& kind, double work = 1);
  /// Further work that becomes known when other cells finish; each call replaces the earlier value.
  void to_come(Durations::WorkByKind work);
  /// The cell has run for `seconds` and will run for `left` more.
  void at_work(const std::string& cell, double seconds, double left, double now);
  /// The cell stopped before its end.
  void given_up(const std::string& cell);
  /// The cell is finished, or will not be run.
  void over(const std::string& cell);
  /// `work` of this kind took `seconds`.
  void took(const std::string& kind, double seconds, double work = 1);
  /// As Durations::tried.
  void tried(const std::string& kind, double seconds);
  /// Whether the seconds of the task of this kind are known, also from cells at work.
  bool know(const std::string& kind) const;

  /// Seconds of work, one cell after another; empty while too little is known.
  std::optional<double> one_by_one(double now) const;
  /// Seconds until all cells are finished with `jobs` in parallel: at least the longest of the running ones.
  std::optional<double> together(int jobs, double now) const;

 private:
  struct Working {
    double seconds, left, at;
    double rest(double now) const { return std::max(0.0, left - (now - at)); }
  };
  struct Expected {
    std::string kind;
    double work;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Expected> cells_;  // unfinished ones
  Durations::WorkByKind to_come_;
  std::map<std::string, Working> working_;
  Durations durations_;
};

}  // namespace hardgrad::sweeps
