// Trees in the Penn Treebank's brackets (Marcus, Santorini & Marcinkiewicz 1993).
#pragma once

#include <string>
#include <vector>

namespace hardgrad::tasks {

struct ReadTree {
  std::vector<std::string> words;
  std::vector<std::string> row;  ///< (S (NP XX )NP ... )S, as in linear_tree.hpp
};

/// Reads trees like (S (NP-SBJ (DT The) (NN dog)) (VP (VBZ barks))); line breaks have no meaning, and an outermost bracket may
/// lack its label. Tagged words become XX. Labels are cut at `-` or `=`. Empty elements (-NONE-) and constituents of only such
/// elements are dropped. InputError where brackets do not match, or a bracket has neither word nor constituent.
std::vector<ReadTree> read_bracketed_trees(const std::string& path);

}  // namespace hardgrad::tasks
