// How long a run still takes: what its cells that are over took, and how far those at work are.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "experiments/sweeps/durations.hpp"

namespace hardgrad::sweeps {

/// Told about cells by name, their kind and times in seconds of any one clock. May be told and asked from any thread.
class WorkLeft {
 public:
  /// A cell that is to be run; `work` as in Durations::Left.
  void expect(const std::string& cell, const std::string& kind, double work = 1);
  /// Besides these, all that will be known only when others are over; said anew, it takes the place of what was said before.
  void to_come(Durations::Left work);
  /// It has been at work for `seconds` and will be for `left` more.
  void at_work(const std::string& cell, double seconds, double left, double now);
  /// It is at work no more, and not over.
  void given_up(const std::string& cell);
  /// It is over, or not to be run any more.
  void over(const std::string& cell);
  /// So much work of this kind took so long.
  void took(const std::string& kind, double seconds, double work = 1);

  /// Seconds of work, one cell after another; nothing while too little is known.
  std::optional<double> one_by_one(double now) const;
  /// Seconds until all is done, so many at a time: no less than the longest of those at work.
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
  std::map<std::string, Expected> cells_;  // that are not over
  Durations::Left to_come_;
  std::map<std::string, Working> working_;
  Durations durations_;
};

}  // namespace hardgrad::sweeps
