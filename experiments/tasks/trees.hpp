// Trees over sentences: as rows of brackets, from a grammar, and from the files of a treebank.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/random/key.hpp"
#include "experiments/tasks/sequence_task.hpp"

namespace hardgrad::tasks {

// A tree over a sentence as a row of brackets: (S (NP XX )NP (VP XX )VP )S, where XX stands for the next word (Vinyals, Kaiser,
// Koo, Petrov, Sutskever & Hinton 2015, Grammar as a foreign language).

/// A constituent: its label, its first word, and one past its last word.
using Bracket = std::tuple<std::string, int, int>;

inline const std::string tree_leaf = "XX";

/// The constituents of a tree over `words` words. Nothing if the row is not a tree: brackets that do not match or contain no
/// word, more than one root, or another number of words.
std::optional<std::multiset<Bracket>> brackets_of(const std::vector<std::string>& row, std::size_t words);

/// True for an opening bracket.
inline bool opens(const std::string& symbol) { return symbol.starts_with('('); }

// A small generated grammar in which a prepositional phrase attaches to the verb or to the noun before it.

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

// Trees in the Penn Treebank's brackets (Marcus, Santorini & Marcinkiewicz 1993).

struct ReadTree {
  std::vector<std::string> words;
  std::vector<std::string> row;  ///< (S (NP XX )NP ... )S
};

/// Reads trees like (S (NP-SBJ (DT The) (NN dog)) (VP (VBZ barks))); line breaks have no meaning, and an outermost bracket may
/// lack its label. Tagged words become XX. Labels are cut at `-` or `=`. Empty elements (-NONE-) and constituents of only such
/// elements are dropped. InputError where brackets do not match, or a bracket has neither word nor constituent.
std::vector<ReadTree> read_bracketed_trees(const std::string& path);

}  // namespace hardgrad::tasks
