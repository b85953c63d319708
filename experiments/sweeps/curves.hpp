// The curves of a sweep's finished and unfinished cells, from its folder.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sweeps/folder.hpp"

namespace hardgrad::sweeps {

/// A point of a curve: the cost of training so far, and the loss.
struct CurvePoint {
  int step = 0;
  double rows = 0, cpu_seconds = 0, loss = 0;
};

struct CellCurve {
  AxisValues axes;
  CellStatusLine line;
  int step = 0;                                   ///< the last known one
  std::optional<double> share;                    ///< of its budget; 1 if it is finished
  std::vector<CurvePoint> training;               ///< logged mean losses
  std::map<std::string, double> losses, metrics;  ///< of the last evaluation
  std::string ended_by;                           ///< TrainResult::ended_by
};

/// Reads a folder repeatedly; unchanged files and finished cells are not read again.
class Curves {
 public:
  explicit Curves(SweepFolder folder) : folder_(std::move(folder)), cells_(folder_.cells()) {}
  /// The curves of all cells that are not skipped, in the plan's order. InputError if there is no plan.
  std::vector<CellCurve> look();
  /// The status of the sweep at the last look().
  const SweepStatus& status() const { return status_; }

 private:
  struct Known {
    bool done = false;
    std::filesystem::file_time_type time = {};  // of the file of an unfinished cell
    training::TrainResult result = {};
  };
  const training::TrainResult* read(const std::string& hash, bool done);
  SweepFolder folder_;
  storage::CellStore cells_;
  SweepStatus status_;
  std::map<std::string, Known> known_;
};

}  // namespace hardgrad::sweeps
