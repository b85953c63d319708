// Common options of `plan` and `run`: a sweep's file, changes to it, and the selection of cells.
#pragma once

#include <string>
#include <vector>

#include "experiments/cli/verb.hpp"
#include "experiments/sweeps/run.hpp"

namespace hardgrad::cli {

struct SweepOptions {
  std::string file, out, shard, progress = "auto";
  std::vector<std::string> sets, only;
  int jobs = 0;

  /// Adds the options; returns the argument for the file.
  Argument add(Verb& verb);
  sweeps::SweepConfig config() const;
  /// Checks shard and filters; the folder is --out or the configuration's.
  sweeps::RunOptions run_options(const sweeps::SweepConfig& config) const;
};

}  // namespace hardgrad::cli
