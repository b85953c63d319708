// Sentence pairs from tab-separated files (Tatoeba as packed by manythings.org/anki) or two parallel texts; CMUdict.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::tasks {

struct TextPair {
  std::string first, second;
};

/// Columns 1 and 2 of every line; further columns are ignored. InputError on a line with one column or an empty one.
std::vector<TextPair> read_tab_pairs(const std::string& path);

/// Line i of one file with line i of the other; lines may be empty. InputError if the files differ in length, or in every pair
/// a side is empty.
std::vector<TextPair> read_parallel_text(const std::string& first_path, const std::string& second_path);

/// A word of a pronouncing dictionary.
struct Pronunciation {
  std::string word;
  int variant = 1;                    ///< 2 for `word(2)`
  std::vector<std::string> phonemes;  ///< with stress digits, as written
};

/// CMUdict: `word PH ON EM ES # comment`. InputError on a word without phonemes and on an invalid phoneme.
std::vector<Pronunciation> read_cmudict(const std::string& path);

}  // namespace hardgrad::tasks
