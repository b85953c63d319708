// Writes a network's attention as word alignments: plain files in the Pharaoh format, for `python3 -m analysis align` and tools
// for machine translation.
#pragma once

#include <string>

#include "experiments/tasks/task.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad::cli {

/// Writes files to a folder, which is created if needed, with one line for each example of the evaluated split, in the
/// order of the data's file, as write_hypotheses:
/// - `source.txt` and `target.txt`: words separated by blanks, without the end mark;
/// - `links.txt` (0-0 1-2): the source word that each target word attends to most, for all heads; null positions give no link;
/// - `gold.txt` (0-0 1?2; ?: possible, not sure), if gold links are known.
/// Returns the number of lines. UsageError if the network does not attend to source words, or the folder cannot be written.
template <class T>
std::size_t write_alignments(const std::string& folder, const tasks::Task& task, const Model<T>& model, const Target& target,
                             const training::EvaluationSettings& settings);

}  // namespace hardgrad::cli
