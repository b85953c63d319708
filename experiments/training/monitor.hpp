// What evaluations are ranked by, where the best of them is kept, patience ends, or settings are searched for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/training/trainer.hpp"

namespace hardgrad::training {

/// Losses that an evaluation may have, per example; the first of those it has ranks, where only "loss" is asked for. (The
/// analysis of results has the same order.)
extern const std::vector<std::string> evaluated_losses;

/// Whether more is better of `what`: "loss", a loss by its name, or a metric of the task. UsageError, beginning with `where`,
/// says which there are.
bool higher_is_better(const tasks::Task& task, const std::string& what, const std::string& where);

struct Monitored {
  double value;
  std::string quantity;  ///< heldout_<loss> or metric_<name>, as in the results
};
/// What an evaluation has of it; nothing if it has none.
std::optional<Monitored> monitored(const EvaluationPoint& point, const std::string& what);
/// "its evaluation has no bleu; it has: ..."
std::string nothing_to_monitor(const EvaluationPoint& point, const std::string& what);

}  // namespace hardgrad::training
