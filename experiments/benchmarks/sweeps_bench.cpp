// sweep/jobs:n  a sweep of 16 cells, each measuring one estimator, from plan to files, on n threads.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <tbb/global_control.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "experiments/benchmarks/parts_bench.hpp"
#include "experiments/sweeps/config.hpp"
#include "experiments/sweeps/run.hpp"

namespace hardgrad::benchmarks {
namespace {

constexpr auto text = R"(
name = "cells"
[grid]
task = ["translation[examples=200,max_length=8]"]
model = ["translator[embedding=32,hidden=32,feed=sampled]"]
estimator = ["reinforce", "rloo[samples=2]"]
seed = [1, 2, 3, 4, 5, 6, 7, 8]
[train]
steps = 0
[measure]
at = ["start"]
batch = 32
replicates = 256
estimand = "none"
)";

void sweep(benchmark::State& state, int jobs) {
  namespace fs = std::filesystem;
  const auto folder = fs::temp_directory_path() / fmt::format("hardgrad_sweeps_bench_{}", getpid());
  fs::create_directories(folder);
  std::ofstream(folder / "cells.toml") << text;
  sweeps::TaskPool tasks;
  const auto plan = sweeps::make_plan(sweeps::read_config((folder / "cells.toml").string()), tasks);
  sweeps::RunOptions options;
  options.out = (folder / "run").string();
  options.jobs = jobs;
  options.progress = sweeps::ProgressMode::none;
  options.print = [](const std::string&) {};
  for (auto _ : state) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(jobs));
    if (sweeps::run_plan(plan, tasks, options).ok != plan.cells.size()) state.SkipWithError("not every cell ran");
    state.PauseTiming();
    fs::remove_all(folder / "run");
    state.ResumeTiming();
  }
  fs::remove_all(folder);
}

}  // namespace

void add_sweeps() {
  for (int jobs : {1, 2})
    benchmark::RegisterBenchmark(fmt::format("sweep/jobs:{}", jobs).c_str(), sweep, jobs)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
}

}  // namespace hardgrad::benchmarks
