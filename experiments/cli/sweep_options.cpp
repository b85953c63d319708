#include "experiments/cli/sweep_options.hpp"

#include <fmt/format.h>

#include "core/support/error.hpp"
#include "experiments/support/number.hpp"

namespace hardgrad::cli {

Argument SweepOptions::add(Verb& verb) {
  const auto argument = verb.add("sweep", file, "the sweep's TOML file");
  verb.add("--out", out, "folder of the cells; by default from the file");
  verb.add("--jobs", jobs, "parallel cells, at most one per core; 0: one per core. It does not change the numbers")
      .from_to(0, 4096);
  verb.repeated("--set", sets, "a.b=VALUE: overrides any setting of the file; may be repeated");
  verb.repeated("--only", only,
                "cells by key=name, with any settings (estimator=exact), or by a pattern (estimator=rloo*, rloo*); all of "
                "several must match");
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
  run.progress = progress == "auto"    ? sweeps::ProgressMode::automatic
                 : progress == "plain" ? sweeps::ProgressMode::plain
                                       : sweeps::ProgressMode::none;
  if (shard.empty()) return run;
  const auto slash = shard.find('/');
  run.shard = number_of<std::size_t>(shard.substr(0, slash)).value_or(0);
  run.shards = slash == std::string::npos ? 0 : number_of<std::size_t>(shard.substr(slash + 1)).value_or(0);
  if (run.shard < 1 || run.shard > run.shards)
    throw UsageError(fmt::format("--shard: must be k/n with k from 1 to n, got \"{}\"", shard));
  return run;
}

}  // namespace hardgrad::cli
