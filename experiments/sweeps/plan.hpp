// A plan: every cell of a sweep, with its hash, its random streams, and why it is skipped if it is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "experiments/sweeps/durations.hpp"
#include "experiments/sweeps/search.hpp"

namespace hardgrad::sweeps {

/// What a plan with [tune] grows by.
struct Tuning {
  std::shared_ptr<const SweepConfig> config;
  std::vector<Search> searches;  ///< one for each estimator and network
  std::vector<Cell> skipped;     ///< what no search is worth making for
  std::vector<Cell> to_come;     ///< cells whose settings are not chosen yet, with the first settings in their place
};

struct Plan {
  std::string name, precision, config;  ///< config: the resolved TOML
  std::uint64_t seed = 0;
  std::vector<Cell> cells;            ///< that are known, in order; with [tune] more come as trials end (`grow`)
  std::vector<std::string> warnings;  ///< e.g. an exclusion that matches nothing
  std::string hash;                   ///< 16 hex digits over all that is asked for
  std::optional<Tuning> tuning = {};  ///< of a sweep with [tune]

  /// As frozen in plan.json, from which `status` and `merge` read.
  nlohmann::json json() const;
};

/// The number that a task's data in a cell are made from: `measure --seed` with it sees the same data.
std::uint64_t run_seed(std::uint64_t root_seed, const AxisValues& axes);

/// Streams of one cell, made of names and values, never of an order. Cells that share a task and seed share
/// data and the order of batches; those that share the model besides start from the same parameters; noise is
/// each cell's own.
struct CellKeys {
  Key data, init, order, noise;
  CellKeys(std::uint64_t root_seed, const AxisValues& axes);
};

/// Tasks shared between cells: each is loaded once and dropped after its last user.
class TaskPool {
 public:
  /// The task of a spec and stream; throws what loading throws, prefixed by the spec.
  std::shared_ptr<const tasks::Task> get(const std::string& spec, Key data);
  using Users = std::map<std::pair<std::string, std::uint64_t>, int>;
  /// How often each task (spec, value of its stream) will still be asked for; all others are forgotten.
  void expect(const Users& users);

 private:
  struct Slot {
    std::mutex loading;
    std::shared_ptr<const tasks::Task> task;
    int users = -1;  ///< left; negative: keep for ever
  };
  std::mutex mutex_;
  std::map<std::pair<std::string, std::uint64_t>, std::shared_ptr<Slot>> slots_;
};

/// All that a cell's numbers depend on: `name=value` lines of its axes, settings, precision, root seed and plugins'
/// builds. The cell's hash is the hash of this text.
std::string identity(const std::string& precision, std::uint64_t root_seed, const Cell& cell);

/// 16 hex digits of a text's hash.
std::string text_hash(const std::string& text);

/// The axes and settings of a cell as the sweep has them. `used`: which overrides applied.
CellSettings settings_of(const SweepConfig& config, const AxisValues& axes, std::vector<bool>* used = nullptr);

/// Expands the configuration; builds each (task, model) once to learn which estimators it supports.
Plan make_plan(const SweepConfig& config, TaskPool& tasks);

/// Cells a filter keeps: `estimator=rloo*`, `seed=1`, a bare glob on any value; all filters must match.
/// UsageError if an axis does not exist.
bool filter_keeps(const std::vector<std::string>& filters, const Cell& cell);
/// Cells of the k-th of n shards that the filters keep, in the plan's order; `to_come`: of those that are not known yet,
/// instead of those that are. UsageError, with what may have been meant, if a filter keeps no cell of the whole plan.
std::vector<const Cell*> selected_cells(const Plan& plan, const std::vector<std::string>& filters, std::size_t shard,
                                        std::size_t shards, bool to_come = false);
/// Whether more is better of what the cell's evaluations have by this name; UsageError if they never do. `setting` asked.
bool more_is_better(const SweepConfig& config, const std::string& setting, const std::string& what, const Cell& cell,
                    TaskPool& tasks);
/// What these cells are to do, by kind.
Durations::Left work_of(const std::vector<const Cell*>& cells);

/// What differs between a frozen plan and this one, in one line; empty if nothing.
std::string plan_difference(const nlohmann::json& frozen, const Plan& plan);

}  // namespace hardgrad::sweeps
