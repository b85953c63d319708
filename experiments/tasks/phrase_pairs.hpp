// Generated pairs of sentences about who did what to whom: do they say the same, does one follow from the other?
#pragma once

#include <string>
#include <vector>

#include "core/random/key.hpp"

namespace hardgrad::tasks {

struct LabelledPair {
  std::string label;
  std::vector<std::string> first, second;
};

/// Sentences of two noun phrases and a verb, "the a3 n1 v2 the n4". Word n1 has a synonym, n1s (so have adjectives and verbs),
/// and is of a kind, k1 (noun i of kind i mod `words` / 2).
struct PhrasePairs {
  enum class Kind { phrase, paraphrase, entailment };
  int words = 8;  ///< of each: adjectives, nouns, verbs
  Kind kind = Kind::paraphrase;

  /// Phrase: a noun with or without an adjective, and the same in synonyms, about half of them. Label `same`; `other`: another
  /// noun or adjective. Paraphrase: the second sentence has synonyms for about half of the words, and stands in the passive
  /// half of the time ("the n4 is v2 by the a3 n1"). Label `same`; `other`: a word of another meaning, or who and whom
  /// exchanged. Entailment: `entails`: the second sentence has kinds for nouns, or lacks adjectives; `neutral`: it says more of
  /// a noun than the first; `contradicts`: it says the opposite of an adjective (u3) or that it did not happen ("not").
  LabelledPair generate(Key key) const;
};

}  // namespace hardgrad::tasks
