// Tokens, lower case and vocabularies.
#include "experiments/tasks/text.hpp"

#include <doctest/doctest.h>

namespace hardgrad::testing::text_test {
using namespace tasks;

using Words = std::vector<std::string>;

TEST_CASE("lower case covers umlauts, accents, Greek and Cyrillic") {
  CHECK(lower_case("ÄÖÜẞ ÉÑØ × ŠŽŁ ŸĲ") == "äöüß éñø × šžł ÿĳ");
  CHECK(lower_case("ΑΩ ЯЁ") == "αω яё");
  CHECK(lower_case("äß1_€😀") == "äß1_€😀");
}

TEST_CASE("punctuation is split from words, hyphens and apostrophes within words are kept") {
  CHECK(tokenize("Grüß Gott!", true) == Words{"grüß", "gott", "!"});
  CHECK(tokenize("„Komm“, sagte er – schnell…", false) == Words{"„", "Komm", "“", ",", "sagte", "er", "–", "schnell", "…"});
  CHECK(tokenize("Don’t, it's Tom's E-Mail.", true) == Words{"don't", ",", "it's", "tom's", "e-mail", "."});
  CHECK(tokenize("3.50 or 2,000? 7.", true) == Words{"3.50", "or", "2,000", "?", "7", "."});
  CHECK(tokenize("a\u00A0b\u202Fc\u00ADd", true) == Words{"a", "b", "cd"});
  CHECK(tokenize(" \t ", true).empty());
  CHECK(tokenize("'quoted' - dash", true) == Words{"'", "quoted", "'", "-", "dash"});
  CHECK(is_punctuation("…"));
  CHECK(is_punctuation("!"));
  CHECK_FALSE(is_punctuation("a"));
  CHECK_FALSE(is_punctuation("7"));
  CHECK_FALSE(is_punctuation("!!"));
  CHECK(characters("aß€") == Words{"a", "ß", "€"});
}

TEST_CASE("a vocabulary keeps the frequent words and maps the others to unknown") {
  Vocabulary words;
  for (const auto* word : {"b", "c", "a", "c", "b", "c", "d"}) words.count(word);
  words.close(4, 7);
  CHECK(words.size() == 7);
  CHECK(words.word(0) == "<pad>");
  CHECK(words.index("c") == 4);
  CHECK(words.index("b") == 5);
  CHECK(words.index("a") == 6);  // as frequent as d, but first by its bytes
  CHECK(words.index("d") == Vocabulary::unknown);
  CHECK(words.index("<pad>") == Vocabulary::unknown);
}

}  // namespace hardgrad::testing::text_test
