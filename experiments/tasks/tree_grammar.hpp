// A small generated grammar in which a phrase may belong to the verb or to the noun before it.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/sequence_task.hpp"

namespace hardgrad::tasks {

/// S -> NP VP, VP -> V NP PP*, NP -> the (a)? n PP*, PP -> p NP. To what a PP belongs is seen from the words alone
/// (Ratnaparkhi, Reynar & Roukos 1994):
///   - `of` belongs to the noun before it;
///   - `with` to the verb, if the verb is of those that take tools (v0, v2, ...) and its noun is a tool (n0, n2, ...);
///   - `in` to the verb, if its noun is a place (n0, n3, ...);
/// else to the noun before it. With `ambiguity`, that share of the PPs that could be either belongs to the other one: no reader
/// can know.
struct TreeGrammar {
  int words = 8;         ///< nouns, verbs and adjectives: so many of each
  int phrases = 2;       ///< most PPs after the verb
  double ambiguity = 0;  ///< in [0, 1]

  /// The sentence of this key, and its tree as a row of brackets.
  SequencePair generate(Key key) const;
};

}  // namespace hardgrad::tasks
