// A small generated language whose spelling says, letter by letter and from afar, how its words sound.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/sequence_task.hpp"

namespace hardgrad::tasks {

/// Words of consonants and vowels in turn, with rules of English spelling in small:
///   - sh, ch, th are one sound each (SH, CH, TH), a doubled consonant is one;
///   - c is S before e and i, else K;
///   - a vowel is long (a: EY, e: IY, i: AY, o: OW, u: UW) if one consonant and a last e follow, and that e is silent; else it
///     is short (AE, EH, IH, AA, AH).
/// Every sound is linked to the first letter that spells it.
struct Spelling {
  int syllables = 3;  ///< most

  /// The word of this key.
  SequencePair generate(Key key) const;
};

/// How letters sound.
SequencePair pronounced(const std::string& letters);

}  // namespace hardgrad::tasks
