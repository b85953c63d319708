// The search of [tune] for the best settings of one estimator on one network. All settings train for a short time, the best
// share of them for longer, and so on (successive halving: Jamieson & Talwalkar 2016). The number of cells in each round is
// known from the start; the cells themselves depend on the previous round.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweeps/plan_cell.hpp"

namespace hardgrad::sweeps {

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

}  // namespace hardgrad::sweeps
