// Tokens of sentences and the numbers of words: lower case and words for languages in Latin, Greek or Cyrillic letters.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hardgrad::tasks {

// Tokens of sentences: lower case and words for languages in Latin, Greek or Cyrillic letters.

/// Lower case of valid UTF-8, including letters with accents and umlauts, independent of the locale.
std::string lower_case(std::string_view text);
/// Words and punctuation marks of valid UTF-8; each mark is a token. Apostrophes and hyphens between letters, and points and
/// commas between digits, stay inside their word. Invisible characters are dropped.
std::vector<std::string> tokenize(std::string_view text, bool lower);
/// A part of a line, and the column where it starts, from 1.
struct Piece {
  std::string_view text;
  std::size_t column;
};
/// The parts between spaces and tabs.
std::vector<Piece> pieces_of(std::string_view line);
std::vector<std::string> between_blanks(std::string_view text);
/// The single characters of valid UTF-8.
std::vector<std::string> characters(std::string_view text);
/// True for a token that is one punctuation mark.
bool is_punctuation(std::string_view token);

// Numbers of the most frequent words; the others are unknown.

class Vocabulary {
 public:
  static constexpr int pad = 0, unknown = 1, begin = 2, end = 3;
  /// The numbers that no sentence holds, although a network gives them a probability.
  static std::vector<int> marks() { return {pad, begin}; }

  /// Counts a word, or several; only before `close`.
  void count(const std::string& word) { ++counts_[word]; }
  void count(const std::vector<std::string>& words) {
    for (const auto& word : words) count(word);
  }
  /// Words that are numbered before all others, in this order; only before `close`.
  void begin_with(std::vector<std::string> words) { first_ = std::move(words); }
  /// Numbers the entries, at most `limit` (0: no limit): first the `specials` first of <pad> <unk> <bos> <eos>, then the words
  /// of `begin_with`, then words by decreasing count, equal counts in the order of their bytes.
  void close(int specials, std::size_t limit = 0);

  int size() const { return static_cast<int>(words_.size()); }
  /// A word's number; `unknown` if it has none.
  int index(const std::string& word) const;
  std::vector<int> indices(const std::vector<std::string>& words) const;
  const std::string& word(int index) const { return words_.at(static_cast<std::size_t>(index)); }

 private:
  std::vector<std::string> first_;
  std::map<std::string, std::size_t> counts_;
  std::unordered_map<std::string, int> index_;
  std::vector<std::string> words_;
};

}  // namespace hardgrad::tasks
