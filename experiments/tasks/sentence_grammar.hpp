// A small generated language pair whose word alignment is known.
#pragma once

#include <string>
#include <vector>

#include "core/random/key.hpp"

namespace hardgrad::tasks {

/// A sentence, its translation, and for each target word the source word it comes from.
struct AlignedPair {
  std::vector<std::string> source, target;
  std::vector<int> alignment;  ///< [target words] positions in `source`
};

/// Source: noun phrases (`the`? adjective? noun) and verbs in turn. Target: `the` vanishes (fertility 0),
/// adjectives follow their noun and a clause's verb comes last (reordering), and every fifth noun becomes two
/// words (fertility 2).
struct SentenceGrammar {
  int words = 8;        ///< nouns, verbs and adjectives: so many of each
  int min_length = 1;   ///< source words
  int max_length = 10;  ///< words, on either side

  /// The sentence of this key.
  AlignedPair generate(Key key) const;
};

}  // namespace hardgrad::tasks
