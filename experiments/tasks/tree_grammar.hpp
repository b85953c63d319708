// A small generated grammar in which a prepositional phrase attaches to the verb or to the noun before it.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/sequence_task.hpp"

namespace hardgrad::tasks {

/// S -> NP VP, VP -> V NP PP*, NP -> the (a)? n PP*, PP -> p NP. The words alone determine the attachment of a PP (Ratnaparkhi,
/// Reynar & Roukos 1994):
///   - `of` attaches to the noun before it;
///   - `with` attaches to the verb if the verb takes tools (v0, v2, ...) and the PP's noun is a tool (n0, n2, ...);
///   - `in` attaches to the verb if the PP's noun is a place (n0, n3, ...);
///   - otherwise `with` and `in` attach to the noun before them.
/// `ambiguity` is the share of the PPs with `with` or `in` that attach to the other one, which no reader can predict.
struct TreeGrammar {
  int words = 8;         ///< number of nouns, of verbs and of adjectives
  int phrases = 2;       ///< most PPs after the verb
  double ambiguity = 0;  ///< in [0, 1]

  /// The sentence of this key, and its tree as a row of brackets.
  SequencePair generate(Key key) const;
};

}  // namespace hardgrad::tasks
