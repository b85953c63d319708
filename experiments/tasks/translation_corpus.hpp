// The pairs of a translation task, generated or read from files, and the numbers of those left out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "core/registry/fields.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/sequence_task.hpp"

namespace hardgrad::tasks {

/// Separates words that are written letter by letter.
inline constexpr const char* blank_letter = "\u2423";

enum class TextFormat { generated, tatoeba, text };
inline constexpr Named<TextFormat> text_formats[] = {
    {"generated", TextFormat::generated}, {"tatoeba", TextFormat::tatoeba}, {"text", TextFormat::text}};
enum class Symbols { words, letters };
inline constexpr Named<Symbols> all_symbols[] = {{"words", Symbols::words}, {"letters", Symbols::letters}};

/// The files of pairs of a split.
struct TextFiles {
  std::string prefix;  // of the settings' names
  std::string path = {}, target_path = {};

  void declare(Fields& field, const std::string& of_path, const std::string& of_target_path) {
    field.file(path, prefix + "path", of_path);
    field.file(target_path, prefix + "target_path", of_target_path);
  }
};

/// The settings of the task `translation`.
struct TranslationConfig {
  TextFormat data = TextFormat::generated;
  TextFiles train{""}, dev{"dev_"}, test{"test_"};
  std::string links;
  Symbols symbols = Symbols::words;
  int source_column = 2, examples = 2000, words = 8;
  std::size_t vocabulary = 2000;
  int min_length = 1, max_length = 10;
  std::size_t limit = 0;
  SplitShares shares{.heldout = 0.05, .test = 0.05};
  bool lower_case = true;

  void declare(Fields& field);
};

struct TranslationCorpus {
  std::vector<SequencePair> pairs;  ///< not empty
  Sides sources, targets;           ///< the words of their sides, in lower case: their content, also where symbols are letters
  std::vector<Split> given;         ///< the splits of the last pairs, which come from files of their own
  std::string origin = "generated";
  std::size_t read = 0, blank = 0, wrong_length = 0, beyond_limit = 0;
};

/// The pairs selected by the settings, in the order of their files or numbers, then all pairs of
/// `dev_path` and `test_path`. UsageError if settings contradict each other; InputError if a file cannot be read or no pair is
/// left.
TranslationCorpus read_translation_corpus(const TranslationConfig& config, Key key);

}  // namespace hardgrad::tasks
