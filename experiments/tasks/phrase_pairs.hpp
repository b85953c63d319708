// Generated pairs of sentences about who did what to whom, labelled as paraphrases or by entailment.
#pragma once

#include <string>
#include <vector>

#include "core/random/key.hpp"

namespace hardgrad::tasks {

struct LabelledPair {
  std::string label;
  std::vector<std::string> first, second;
};

/// Sentences of two noun phrases and a verb, "the a3 n1 v2 the n4". Every noun n1, adjective and verb has a synonym, n1s. Noun
/// i is of kind k<i mod `words` / 2>.
struct PhrasePairs {
  enum class Kind { phrase, paraphrase, entailment };
  int words = 8;  ///< number of adjectives, of nouns and of verbs
  Kind kind = Kind::paraphrase;

  /// The second member of a pair, by `kind`:
  /// - phrase: a noun with or without an adjective, about half of the words replaced by synonyms. Label `same`; or `other`:
  ///   another noun or adjective.
  /// - paraphrase: about half of the words replaced by synonyms, half of the sentences in the passive ("the n4 is v2 by the a3
  ///   n1"). Label `same`; or `other`: a word of another meaning, or subject and object exchanged.
  /// - entailment: label `entails`: kinds replace nouns, or adjectives are dropped; `neutral`: a noun has an additional
  ///   adjective; `contradicts`: an opposite adjective (u3), or a negation ("not").
  LabelledPair generate(Key key) const;
};

}  // namespace hardgrad::tasks
