// A small sweep, run in a folder, and the numbers in its files.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "experiments/sweeps/run.hpp"
#include "files.hpp"

namespace hardgrad::testing {

inline const std::string sweep = R"(
name = "toy"
seed = 5
[grid]
task = ["bits", "not_gate"]
estimator = ["rloo[samples=2]", "reinforce", "moving_baseline", "exact"]
seed = [1, 2]
[train]
steps = 12
batch = 2
learning_rate = 0.05
log_every = 4
evaluate_every = 6
[measure]
method = "sampled"
at = ["start", "50%", "end"]
replicates = 24
)";

inline sweeps::RunReport run(const std::string& out, sweeps::RunOptions options = {}, const std::string& text = sweep) {
  sweeps::TaskPool tasks;
  const auto plan = sweeps::make_plan(config_of(text), tasks);
  options.out = out;
  options.progress = sweeps::ProgressMode::none;
  if (!options.print) options.print = [](const std::string&) {};
  return sweeps::run_plan(plan, tasks, options);
}

inline storage::CellStore cells_in(const std::string& out) { return storage::CellStore(sweeps::SweepFolder{out}.cells()); }

/// A cell's file, and its record's first byte and size there.
struct Place {
  std::string path;
  std::size_t at = 0, size = 0;
};
inline Place place_of(const std::string& out, const std::string& hash) {
  const auto path = cells_in(out).find(hash).value().path;
  for (const auto& place : storage::scan_cells(get(path)).cells)
    if (place.cell.cell_hash == hash) return {path, place.at, place.size};
  throw Bug("no such cell");
}
/// Removes a cell.
inline void forget(const std::string& out, const std::string& hash) {
  const auto place = place_of(out, hash);
  put(place.path, get(place.path).erase(place.at, place.size));
}

// Bits, so that NaN equals itself.
inline std::uint64_t bits(double x) {
  std::uint64_t b;
  std::memcpy(&b, &x, sizeof b);
  return b;
}

// Every number of all cells, except times.
inline std::map<std::string, std::vector<std::uint64_t>> numbers(const std::string& out, const std::string& text = sweep) {
  sweeps::TaskPool tasks;
  std::map<std::string, std::vector<std::uint64_t>> result;
  const auto plan = sweeps::make_plan(config_of(text), tasks);
  const auto cells = cells_in(out);
  for (const auto& cell : plan.cells) {
    if (const auto entry = cells.find(cell.hash); !entry || !entry->checksum_ok) continue;
    const auto record = cells.read(cell.hash);
    auto& list = result[cell.hash];
    const auto add = [&](double x) { list.push_back(bits(x)); };
    for (const auto& point : record.result.log) add(point.step), add(point.loss), add(point.gradient_norm);
    for (const auto& point : record.result.evaluations) {
      add(point.step);
      for (const auto& [name, value] : point.losses) add(value);
      for (const auto& [name, value] : point.metrics) add(value);
    }
    for (const auto& [step, m] : record.result.measurements) {
      add(step), add(m.variance), add(m.squared_bias), add(m.cosine), add(m.bias_p_value), add(m.rows), add(m.estimand_norm);
      for (double x : m.mean) add(x);
      for (const auto& [name, value] : m.bias_against) add(value);
      for (const auto& [name, ends] : m.intervals) add(ends[0]), add(ends[1]);
    }
  }
  return result;
}

}  // namespace hardgrad::testing
