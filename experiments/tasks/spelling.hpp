// A small generated language with spelling rules that determine the sounds of a word, in part from distant letters.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/sequence_task.hpp"

namespace hardgrad::tasks {

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
