// The curves of a sweep's cells, done or on their way, as far as its folder tells.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sweeps/folder.hpp"

namespace hardgrad::sweeps {

/// A point of a curve: what training had cost by then, and the loss.
struct CurvePoint {
  int step = 0;
  double rows = 0, cpu_seconds = 0, loss = 0;
};

struct CellCurve {
  AxisValues axes;
  CellStatusLine line;
  int step = 0;                                   ///< as far as is known
  std::optional<double> share;                    ///< of its budget; 1 if it is over
  std::vector<CurvePoint> training;               ///< mean losses as they were logged
  std::map<std::string, double> losses, metrics;  ///< of the last evaluation
  std::string ended_by;                           ///< TrainResult::ended_by
};

/// Looks into a folder again and again; files that did not change are not read again.
class Curves {
 public:
  explicit Curves(SweepFolder folder) : folder_(std::move(folder)) {}
  /// Of all cells that are not skipped, in the plan's order. InputError if there is no plan.
  std::vector<CellCurve> look();
  /// How far the sweep was when it was looked at.
  const SweepStatus& status() const { return status_; }

 private:
  struct Known {
    std::filesystem::file_time_type time;
    training::TrainResult result;
  };
  const training::TrainResult* read(const std::string& path, bool done);
  SweepFolder folder_;
  SweepStatus status_;
  std::map<std::string, Known> known_;
};

}  // namespace hardgrad::sweeps
