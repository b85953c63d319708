// Writes a network's sentences as text, for tools that judge translations.
#pragma once

#include <string>

#include "experiments/tasks/task.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad::cli {

/// Writes the sentences that a beam search of width `settings.beam` finds for the examples of the evaluated split, in the order
/// of the data's file: one line per example or, if `most` > 1, up to `most` lines `number ||| words ||| log-probability` (the
/// n-best format of Moses), the most probable first. Words are separated by blanks; number counts the examples from 0. Returns
/// the number of examples. UsageError if the network generates no words, or the file cannot be written.
template <class T>
std::size_t write_hypotheses(const std::string& path, int most, const tasks::Task& task, const Model<T>& model,
                             const Target& target, const training::EvaluationSettings& settings);

}  // namespace hardgrad::cli
