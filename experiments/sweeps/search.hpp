// The search for the best settings of one estimator on one network, as [tune] asks for it: all settings are tried for a short
// training, the best share of them for a longer one, and so on (successive halving: Jamieson & Talwalkar 2016). The plan knows
// from the beginning how many cells each round has; which they are, it learns from the cells of the round before.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweeps/plan_cell.hpp"

namespace hardgrad::sweeps {

/// What one trial came to.
struct Outcome {
  double score = measurement::not_a_number;  ///< of the last evaluation; not finite: it failed
  std::string quantity;                      ///< what that is: heldout_<loss> or metric_<name>
  std::string reason;                        ///< why it failed
};
/// The outcome of a cell; nothing while it is not over.
using Outcomes = std::function<std::optional<Outcome>(const Cell&)>;

/// One round, as far as it is known.
struct SearchRound {
  std::size_t number = 0;             ///< from 1
  std::size_t size = 0;               ///< settings in it, unless fewer are left
  int steps = 0;                      ///< of each of its trials
  std::vector<std::size_t> settings;  ///< which; empty while the round before is not over
  std::vector<double> scores;  ///< of each: mean over the tuning seeds, NaN where a trial failed; empty while it is not over
};

struct Search {
  std::vector<Cell> wanted;           ///< the runs to report, one a seed, their settings still open
  std::vector<TunedValues> settings;  ///< to be tried
  bool higher_is_better = false;
  std::size_t first = 0;  ///< number of its first cell in the plan

  std::vector<SearchRound> rounds;
  std::optional<std::size_t> chosen;  ///< the best of the last round; of equals the first
  std::string stuck;                  ///< why none can be chosen
  std::vector<std::string> failures;  ///< "label: reason" of the trials that failed

  /// How many cells it has in all, trials and reported runs.
  std::size_t cells(const TuneConfig& tune) const;
  /// Takes in what is over: cells that are known go to `known`, the others, with the first settings in their place, to
  /// `to_come`.
  void grow(const SweepConfig& config, const Outcomes& outcomes, std::vector<Cell>& known, std::vector<Cell>& to_come);
  /// What of the chosen setting is the least or the largest number tried, though less or more could be tried:
  /// "train.learning_rate 0.1 is the largest tried (0.001 to 0.1)", joined by "; ". Empty if nothing is, or nothing is chosen.
  std::string edge(const TuneConfig& tune) const;
  /// "train.learning_rate=0.1 train.warmup=100"
  std::string setting_text(std::size_t setting) const;
  /// "task=bits model=bits estimator=rloo", the seed left out
  std::string label() const;
};

}  // namespace hardgrad::sweeps
