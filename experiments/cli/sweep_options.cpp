#include "experiments/cli/sweep_options.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/support/error.hpp"

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
  const auto read = [&](std::string_view text, std::size_t& into) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
    return error == std::errc{} && end == text.data() + text.size();
  };
  if (slash == std::string::npos || !read(std::string_view(shard).substr(0, slash), run.shard) ||
      !read(std::string_view(shard).substr(slash + 1), run.shards) || run.shard < 1 || run.shard > run.shards)
    throw UsageError(fmt::format("--shard: must be k/n with k from 1 to n, got \"{}\"", shard));
  return run;
}

}  // namespace hardgrad::cli
