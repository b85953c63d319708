// Pairs of texts that need no file: translations, labelled sentences, and words with their sounds.
#pragma once

#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "experiments/tasks/sequence_task.hpp"

namespace hardgrad::tasks {

// A small generated language pair whose word alignment is known.

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

// Generated pairs of sentences about who did what to whom, labelled as paraphrases or by entailment.

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

// A small generated language with spelling rules that determine the sounds of a word, in part from distant letters.

/// Words of alternating consonants and vowels, with simplified rules of English spelling:
///   - sh, ch, th are one sound each (SH, CH, TH), a doubled consonant is one;
///   - c is S before e and i, else K;
///   - a vowel is long (a: EY, e: IY, i: AY, o: OW, u: UW) if one consonant and a last e follow, and that e is silent; else it
///     is short (AE, EH, IH, AA, AH).
/// Every sound is linked to the first letter that spells it.
struct Spelling {
  int syllables = 3;  ///< most syllables of a word

  /// The word of this key.
  SequencePair generate(Key key) const;
};

/// The letters of a word and their sounds.
SequencePair pronounced(const std::string& letters);

}  // namespace hardgrad::tasks
