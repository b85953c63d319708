// What there is to translate: pairs generated or read from files, and what was left out on the way.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "core/registry/settings.hpp"
#include "experiments/tasks/sentence_grammar.hpp"

namespace hardgrad {

struct TranslationCorpus {
  std::vector<AlignedPair> pairs;  ///< never none; `alignment` is empty where it is not known
  std::string origin = "generated";
  std::size_t read = 0, blank = 0, variants = 0, wrong_length = 0, beyond_limit = 0;
};

/// The pairs the settings of the task `translation` ask for, in the order of their files or numbers.
/// UsageError if settings contradict each other, InputError if a file cannot be read or no pair is left.
TranslationCorpus read_translation_corpus(const Settings& settings, Key key);

/// Words with a blank between them.
std::string joined(const std::vector<std::string>& words);

}  // namespace hardgrad
