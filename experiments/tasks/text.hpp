// Words out of sentences: lower case and tokens for languages in Latin, Greek or Cyrillic letters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hardgrad::tasks {

/// Lower case of valid UTF-8; letters with accents and umlauts included. Locale plays no part.
std::string lower_case(std::string_view text);
/// Words and punctuation marks of valid UTF-8, each mark a token of its own. Apostrophes and hyphens between
/// letters, and points and commas between digits, stay inside their word. Invisible characters vanish.
std::vector<std::string> tokenize(std::string_view text, bool lower);
/// What stands between blanks.
std::vector<std::string> between_blanks(std::string_view text);
/// The single characters of valid UTF-8.
std::vector<std::string> characters(std::string_view text);
/// True for a token that is one punctuation mark.
bool is_punctuation(std::string_view token);

}  // namespace hardgrad::tasks
