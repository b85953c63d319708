#include "experiments/cli/sweep_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/support/error.hpp"
#include "experiments/cli/candidates.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::cli {

Argument SweepOptions::add(Verb& verb) {
  const auto argument = verb.add("sweep", file, "the sweep's TOML file");
  verb.add("--out", out, "folder of the cells; by default from the file");
  verb.add("--jobs", jobs, "parallel cells, at most one per core; 0: one per core. It does not change the numbers")
      .from_to(0, 4096);
  verb.repeated("--set", sets, "a.b=VALUE: overrides any setting of the file; may be repeated").completed_by(sweep_settings);
  verb.repeated("--only", only,
                "cells by key=name, with any settings (estimator=exact), or by a pattern (estimator=rloo*, rloo*); all of "
                "several must match")
      .completed_by(axis_patterns);
  verb.add("--shard", shard, "k/n: the k-th of n parts");
  return argument;
}

sweeps::SweepConfig SweepOptions::config() const {
  auto config = sweeps::read_config(file, sets);
  if (!out.empty()) config.out = out;
  return config;
}

sweeps::RunOptions SweepOptions::run_options(const sweeps::SweepConfig& config) const {
  sweeps::RunOptions run;
  run.out = config.out;
  run.jobs = jobs;
  run.only = only;
  run.progress = progress;
  if (shard.empty()) return run;
  const auto slash = shard.find('/');
  run.shard = number_of<std::size_t>(shard.substr(0, slash)).value_or(0);
  run.shards = slash == std::string::npos ? 0 : number_of<std::size_t>(shard.substr(slash + 1)).value_or(0);
  if (run.shard < 1 || run.shard > run.shards)
    throw UsageError(fmt::format("--shard: must be k/n with k from 1 to n, got \"{}\"", shard));
  return run;
}

namespace {

constexpr std::size_t most_tasks = 1000;      // Slurm's MaxArraySize is 1001 unless a site raises it
constexpr double sensible_seconds = 30 * 60;  // of a task: long compared with its start
constexpr double margin = 3, least_minutes = 10, unknown_minutes = 60;

std::size_t tasks_of(const SlurmJob& job) {
  auto tasks = job.tasks;
  if (tasks == 0 && job.core_seconds > 0)
    tasks = static_cast<std::size_t>(std::ceil(job.core_seconds / (sensible_seconds * job.cores)));
  if (tasks == 0) tasks = std::size_t{100};
  return std::clamp<std::size_t>(tasks, 1, std::max<std::size_t>(1, std::min(most_tasks, job.cells)));
}

// The name in a form that needs no quotes in a directive.
std::string plain(std::string name) {
  for (auto& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  return name;
}

}  // namespace

std::string slurm_script(const SlurmJob& job) {
  const auto tasks = tasks_of(job);
  double minutes = unknown_minutes;
  if (job.core_seconds > 0)
    minutes = std::max(least_minutes,
                       margin / 60 * std::max(job.longest, job.core_seconds / (static_cast<double>(tasks) * job.cores)));
  const auto m = static_cast<long>(std::ceil(minutes));
  std::string arguments;
  for (const auto& word : job.run) (arguments += " ") += shell_quoted(word);
  return fmt::format(R"(#!/bin/bash
# {cells} cells of sweep {name} in {tasks} tasks. Submit: sbatch FILE. When all are finished:
#   {program} merge {folder} --out {result}
#SBATCH --job-name={name}
#SBATCH --array=1-{tasks}
#SBATCH --cpus-per-task={cores}
#SBATCH --time={hours:02}:{minutes:02}:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@90
#SBATCH --output={name}-%A_%a.log

# Slurm sends USR1 90 seconds before the time limit: hardgrad saves the running cells, and the task is queued again.
# A cancelled task gets TERM, and so does hardgrad: it saves them, too, but the task is not queued again.
cd {where} || exit 2
signalled= out_of_time=
trap 'signalled=1 out_of_time=1; kill -TERM "$run"' USR1
trap 'signalled=1' TERM
{program} run{arguments} --jobs {cores} --progress plain \
  --shard "$SLURM_ARRAY_TASK_ID/{tasks}" &
run=$!
wait "$run"; status=$?
while [ -n "$signalled" ]; do  # a signal ends a wait, not the run
  signalled=
  wait "$run"; status=$?
done
# bash 5.2 may lose the status, then -1, of a run that ends while its signal is handled.
[ "$status" -ge 0 ] || status=130
# 4: the next cells ([tune]) depend on cells of tasks that have not started.
if [ "$status" -eq 4 ] || {{ [ -n "$out_of_time" ] && [ "$status" -eq 130 ]; }}; then
  scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}" && exit 0
fi
exit "$status"
)",
                     fmt::arg("cells", job.cells), fmt::arg("name", plain(job.name)), fmt::arg("tasks", tasks),
                     fmt::arg("program", shell_quoted(job.program)), fmt::arg("where", shell_quoted(job.where)),
                     fmt::arg("folder", shell_quoted(job.folder)), fmt::arg("result", shell_quoted(job.result)),
                     fmt::arg("cores", job.cores), fmt::arg("hours", m / 60), fmt::arg("minutes", m % 60),
                     fmt::arg("arguments", arguments));
}

}  // namespace hardgrad::cli
