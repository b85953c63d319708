// The quantity that ranks evaluations, for keep_best, patience and the search for settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/training/trainer.hpp"

namespace hardgrad::training {

/// Possible losses of an evaluation, per example, in the order of the table of quantities. "loss" means the first of these that
/// the evaluation has.
extern const std::vector<std::string> evaluated_losses;

/// Whether larger values of `what` are better: "loss", a loss by its name, or a metric of the task. The UsageError starts with
/// `where` and lists the valid names.
bool higher_is_better(const tasks::Task& task, const std::string& what, const std::string& where);

struct Monitored {
  double value;
  std::string quantity;  ///< heldout_<loss> or metric_<name>, as in the results
};
/// The monitored value of an evaluation, if it has one.
std::optional<Monitored> monitored(const EvaluationPoint& point, const std::string& what);
/// "its evaluation has no bleu; it has: ..."
std::string nothing_to_monitor(const EvaluationPoint& point, const std::string& what);

}  // namespace hardgrad::training
