// Running a sweep from a command line: the options that `plan` and `run` share, and a sweep as a job array of Slurm.
#pragma once

#include <string>
#include <vector>

#include "experiments/cli/verb.hpp"
#include "experiments/sweeps/run.hpp"

namespace hardgrad::cli {

struct SweepOptions {
  std::string file, out, shard;
  sweeps::ProgressMode progress = sweeps::ProgressMode::automatic;
  std::vector<std::string> sets, only;
  int jobs = 0;

  /// Adds the options; returns the argument for the file.
  Argument add(Verb& verb);
  sweeps::SweepConfig config() const;
  /// Checks shard and filters; the folder is --out or the configuration's.
  sweeps::RunOptions run_options(const sweeps::SweepConfig& config) const;
};

struct SlurmJob {
  std::string name;                  ///< of the sweep
  std::string program;               ///< path of hardgrad
  std::string where;                 ///< base folder of relative paths
  std::vector<std::string> run;      ///< arguments of `hardgrad run`, without --jobs and --shard
  std::string folder, result;        ///< the folder of the cells, the file to merge them into
  std::size_t cells = 0, tasks = 0;  ///< tasks 0: a sensible number
  int cores = 1;                     ///< of each task
  double core_seconds = 0;           ///< of all cells; 0: unknown
  double longest = 0;                ///< seconds of the longest cell
};

/// The text of an sbatch script (bash). Each task of the array runs its share of the cells with --shard. A task whose time is
/// up stops cleanly, is queued again and resumes.
std::string slurm_script(const SlurmJob& job);

}  // namespace hardgrad::cli
