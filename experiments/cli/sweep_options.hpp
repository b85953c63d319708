// What `plan` and `run` ask alike: a sweep's file, changes to it, and which cells.
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

  /// The argument is the file.
  Argument add(Verb& verb);
  sweeps::SweepConfig config() const;
  /// Shard and filters checked; the folder is --out or the configuration's.
  sweeps::RunOptions run_options(const sweeps::SweepConfig& config) const;
};

}  // namespace hardgrad::cli
