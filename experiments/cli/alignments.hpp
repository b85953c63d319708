// What a network attended to, written as word alignments: plain files in the Pharaoh format, for `python3 -m analysis align`
// and the tools of machine translation.
#pragma once

#include <string>

#include "experiments/tasks/task.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad::cli {

/// Writes into a folder (made if need be), a line for each example of the split that is evaluated, in its order: `source.txt`
/// and `target.txt` (words with a blank between, the end mark left out), `links.txt` (0-0 1-2: the source word that each target
/// word attended to most; null positions are no links; of all heads), and `gold.txt`, if links are known (0-0 1?2, ? being
/// possible, not sure). Returns the number of lines. UsageError if the network does not attend to a source's words, or if the
/// folder cannot be written.
template <class T>
std::size_t write_alignments(const std::string& folder, const tasks::Task& task, const Model<T>& model, const Target& target,
                             const training::EvaluationSettings& settings);

}  // namespace hardgrad::cli
