// A sweep as a job array of Slurm.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::cli {

struct SlurmJob {
  std::string name;                  ///< of the sweep
  std::string program;               ///< path of hardgrad
  std::string where;                 ///< folder that relative paths count from
  std::vector<std::string> run;      ///< arguments of `hardgrad run`, without --jobs and --shard
  std::string folder, result;        ///< where the cells are, what they are merged into
  std::size_t cells = 0, tasks = 0;  ///< tasks 0: as many as are sensible
  int cores = 1;                     ///< of each task
  double core_seconds = 0;           ///< of all cells; 0: unknown
  double longest = 0;                ///< seconds of the longest cell
};

/// The text of an sbatch script (bash). Each task of the array runs its share of the cells by --shard; one that runs out of
/// time stops cleanly and is queued again, and goes on where it stopped.
std::string slurm_script(const SlurmJob& job);

}  // namespace hardgrad::cli
