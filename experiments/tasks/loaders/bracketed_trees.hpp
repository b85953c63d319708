// Trees in the Penn Treebank's brackets (Marcus, Santorini & Marcinkiewicz 1993).
#pragma once

#include <string>
#include <vector>

namespace hardgrad::tasks {

struct ReadTree {
  std::vector<std::string> words;
  std::vector<std::string> row;  ///< (S (NP XX )NP ... )S, as linear_tree.hpp says
};

/// (S (NP-SBJ (DT The) (NN dog)) (VP (VBZ barks))), one after the other, over lines as they come; an outermost bracket may lack
/// its label. Tags of words become XX; labels lose what follows a `-` or `=`; what is not said (-NONE-) and constituents of
/// nothing else go. InputError where brackets do not match, or a bracket has neither word nor constituent.
std::vector<ReadTree> read_bracketed_trees(const std::string& path);

}  // namespace hardgrad::tasks
