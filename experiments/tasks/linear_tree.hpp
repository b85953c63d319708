// A tree over a sentence as a row of brackets: (S (NP XX )NP (VP XX )VP )S, where XX stands for the next word (Vinyals, Kaiser,
// Koo, Petrov, Sutskever & Hinton 2015, Grammar as a foreign language).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace hardgrad::tasks {

/// A constituent: its label, its first word, and one past its last word.
using Bracket = std::tuple<std::string, int, int>;

inline const std::string tree_leaf = "XX";

/// The constituents of a tree over `words` words. Nothing if the row is not a tree: brackets that do not match or contain no
/// word, more than one root, or another number of words.
std::optional<std::multiset<Bracket>> brackets_of(const std::vector<std::string>& row, std::size_t words);

/// True for an opening bracket.
inline bool opens(const std::string& symbol) { return symbol.starts_with('('); }

}  // namespace hardgrad::tasks
