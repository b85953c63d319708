// A small generated language pair whose word alignment is known.
#pragma once

#include <string>
#include <vector>

#include "core/random/key.hpp"

namespace hardgrad::tasks {

/// A sentence, its translation, and the source word of each target word.
struct AlignedPair {
  std::vector<std::string> source, target;
  std::vector<int> alignment;  ///< [target words] positions in `source`
};

/// Source: alternating noun phrases (`the`? adjective? noun) and verbs. Target: `the` has no translation (fertility 0),
/// adjectives follow their noun and the verb of a clause comes last (reordering), and every fifth noun becomes two words
/// (fertility 2).
struct SentenceGrammar {
  int words = 8;        ///< number of nouns, of verbs and of adjectives
  int min_length = 1;   ///< source words
  int max_length = 10;  ///< words, on either side

  /// The sentence of this key.
  AlignedPair generate(Key key) const;
};

}  // namespace hardgrad::tasks
