// A plan: every cell of a sweep, with its hash, random streams and, if it is skipped, the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "experiments/sweeps/cell_data.hpp"
#include "experiments/sweeps/remaining_work.hpp"

namespace hardgrad::sweeps {

// The search of [tune] for the best settings of one estimator on one network. All settings train for a short time, the best
// share of them for longer, and so on (successive halving: Jamieson & Talwalkar 2016). The number of cells in each round is
// known from the start; the cells themselves depend on the previous round.

/// The outcome of one trial.
struct Outcome {
  double score = measurement::not_a_number;  ///< of the last evaluation; not finite: it failed
  std::string quantity;                      ///< name of the score: heldout_<loss> or metric_<name>
  std::string reason;                        ///< why it failed
};
/// The outcome of a cell; empty until it is finished.
using Outcomes = std::function<std::optional<Outcome>(const Cell&)>;

/// The known part of one round.
struct SearchRound {
  std::size_t number = 0;             ///< from 1
  std::size_t size = 0;               ///< largest number of settings in it
  int steps = 0;                      ///< of each of its trials
  std::vector<std::size_t> settings;  ///< their indices; empty until the previous round is finished
  std::vector<double> scores;  ///< of each: mean over the tuning seeds, NaN if a trial failed; empty until it is finished
};

struct Search {
  std::vector<Cell> wanted;           ///< the runs to report, one per seed, without settings
  std::vector<TunedValues> settings;  ///< to try
  bool higher_is_better = false;
  std::size_t first = 0;  ///< index of its first cell in the plan

  std::vector<SearchRound> rounds;
  std::optional<std::size_t> chosen;  ///< the best of the last round; the first of ties
  std::string stuck;                  ///< why none can be chosen
  std::vector<std::string> failures;  ///< "label: reason" of the trials that failed

  /// The total number of cells, trials and reported runs.
  std::size_t cells(const TuneConfig& tune) const;
  /// Uses the outcomes so far: known cells are added to `known`, the others, with the first settings as placeholders, to
  /// `to_come`.
  void grow(const SweepConfig& config, const Outcomes& outcomes, std::vector<Cell>& known, std::vector<Cell>& to_come);
  /// The numbers of the chosen setting that are the smallest or largest tried, if values beyond are allowed:
  /// "train.learning_rate 0.1 is the largest tried (0.001 to 0.1)", joined by "; ". Empty if there are none or none is chosen.
  std::string edge(const TuneConfig& tune) const;
  /// "train.learning_rate=0.1 train.warmup=100"
  std::string setting_text(std::size_t setting) const;
  /// "task=bits model=bits estimator=rloo", without the seed
  std::string label() const;
};

/// The part of a plan with [tune] that grows.
struct Tuning {
  std::shared_ptr<const SweepConfig> config;
  std::vector<Search> searches;  ///< one for each estimator and network
  std::vector<Cell> skipped;     ///< skipped cells, without a search
  std::vector<Cell> to_come;     ///< cells whose settings are not chosen yet, with the first settings as placeholders
};

class Grid;
using AxisSets = std::map<std::string, std::set<std::string>>;  ///< values by axis

struct Plan {
  std::string name;
  Precision precision = Precision::float32;
  std::string config;  ///< the resolved TOML
  std::uint64_t seed = 0;
  std::vector<Cell> cells = {};            ///< the known cells in order; with [tune], finished trials add more (`grow`)
  std::shared_ptr<Grid> grid = {};         ///< of a plan whose `cells` are only those of a shard: all cells
  AxisSets values = {};                    ///< that all cells have
  std::vector<std::string> warnings = {};  ///< e.g. an exclusion that matches nothing
  std::string hash = {};                   ///< 16 hex digits over all cells
  std::string numbering = {};              ///< the same over the cells in order, which shards count
  std::string content = {};                ///< the same over all that plan.json holds without [tune]
  std::optional<Tuning> tuning = {};       ///< of a sweep with [tune]

  /// f(cell) for all known cells of the whole plan.
  void each_cell(const std::function<void(const Cell&)>& f) const;
  /// The content of plan.json, which `status` and `merge` read.
  nlohmann::json json() const;
};

/// Random streams of one cell besides its data's, derived from names and values and not from order. Cells with the same task
/// and seed share the order of batches. With the same model they also share initial parameters. Noise differs between all
/// cells.
struct CellKeys {
  Key init, order, noise;
  CellKeys(std::uint64_t root_seed, const AxisValues& axes);
};

/// Everything that determines a cell's numbers: `name=value` lines of its precision, root seed, axes, builds of plugins,
/// contents of files, and of all settings of its task, model, estimator, target, training and measurement (identity_lines). The
/// cell's hash is the hash of this text.
std::string identity(Precision precision, std::uint64_t root_seed, const Cell& cell);

/// 16 hex digits of a text's hash.
std::string text_hash(const std::string& text);

/// The settings of a cell in the sweep. `used`: receives which overrides applied.
CellSettings settings_of(const SweepConfig& config, const AxisValues& axes, std::vector<bool>* used = nullptr);

/// Expands the configuration. Builds each (task, model) once to find the supported estimators. With several shards and without
/// [tune], the plan holds the cells of the shard only.
Plan make_plan(const SweepConfig& config, TaskPool& tasks, std::size_t shard = 1, std::size_t shards = 1);

/// Whether filters keep a cell: `estimator=exact` (this name, with any settings), `estimator=rloo[samples=2]`,
/// `estimator=rloo*`, `seed=1`, or a pattern without an axis, for any value; all must match. UsageError if an axis does not
/// exist.
bool filter_keeps(const std::vector<std::string>& filters, const Cell& cell);
/// Cells of the k-th of n shards that the filters keep, in the plan's order. `to_come`: those not known yet, instead of the
/// known ones. UsageError with suggestions if a filter keeps no cell of the whole plan.
std::vector<const Cell*> selected_cells(const Plan& plan, const std::vector<std::string>& filters, std::size_t shard,
                                        std::size_t shards, bool to_come = false);
/// Whether larger values of `what` are better in the cell's evaluations; UsageError, naming `setting`, if they never have it.
bool more_is_better(const SweepConfig& config, const std::string& setting, const std::string& what, const Cell& cell,
                    TaskPool& tasks);
/// The work of these cells, by kind.
Durations::WorkByKind work_of(const std::vector<const Cell*>& cells);

/// The difference between a frozen plan and this one, in one line; empty if they are equal.
std::string plan_difference(const nlohmann::json& frozen, const Plan& plan);

}  // namespace hardgrad::sweeps
