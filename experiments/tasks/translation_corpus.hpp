// The pairs of a translation task, generated or read from files, and the numbers of those left out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "core/registry/settings.hpp"
#include "experiments/tasks/sequence_task.hpp"
#include "experiments/tasks/splits.hpp"

namespace hardgrad::tasks {

/// Separates words that are written letter by letter.
inline constexpr const char* blank_letter = "\u2423";

struct TranslationCorpus {
  std::vector<SequencePair> pairs;  ///< not empty
  Sides sources, targets;           ///< the words of their sides, in lower case: their content, also where symbols are letters
  std::vector<Split> given;         ///< the splits of the last pairs, which come from files of their own
  std::string origin = "generated";
  std::size_t read = 0, blank = 0, wrong_length = 0, beyond_limit = 0;
};

/// The pairs selected by the settings of the task `translation`, in the order of their files or numbers, then all pairs of
/// `dev_path` and `test_path`. UsageError if settings contradict each other; InputError if a file cannot be read or no pair is
/// left.
TranslationCorpus read_translation_corpus(const Settings& settings, Key key);

}  // namespace hardgrad::tasks
