// Tokens of sentences: lower case and words for languages in Latin, Greek or Cyrillic letters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hardgrad::tasks {

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

}  // namespace hardgrad::tasks
