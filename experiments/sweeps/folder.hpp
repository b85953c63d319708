// The folder of a sweep: plan.json, cells/<hash>.h5, journal.jsonl; and what it tells about how far things
// are.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweeps/plan.hpp"

namespace hardgrad {

struct SweepFolder {
  std::string path;
  std::string plan() const { return path + "/plan.json"; }
  std::string journal() const { return path + "/journal.jsonl"; }
  std::string cells() const { return path + "/cells"; }
  std::string cell(const std::string& hash) const { return cells() + "/" + hash + ".h5"; }
  std::string checkpoint(const std::string& hash) const { return cells() + "/" + hash + ".checkpoint.h5"; }
};

enum class CellState { pending, ok, failed, skipped, damaged };
std::string to_string(CellState state);
/// Reads the seal of the cell's file: a file that is not whole, or of another hash, is damaged.
CellState cell_state(const SweepFolder& folder, const std::string& hash);

/// The frozen plan; InputError if there is none or it cannot be read.
nlohmann::json read_plan(const SweepFolder& folder);

struct CellStatusLine {
  std::string hash, label;
  CellState state = CellState::pending;
  bool running = false;
  std::string reason;  ///< of a failure or skip
};
struct SweepStatus {
  std::string name, hash;
  std::vector<CellStatusLine> cells;
  double seconds_per_cell = 0;  ///< mean over finished cells; 0 if none
  std::size_t count(CellState state) const;
  std::size_t running() const;
};
/// How far a sweep is; quick, since no HDF5 is opened.
SweepStatus sweep_status(const SweepFolder& folder);

}  // namespace hardgrad
