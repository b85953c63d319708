#include "experiments/tasks/tree_grammar.hpp"

#include <array>
#include <cstdint>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/linear_tree.hpp"

namespace hardgrad::tasks {
namespace {

/// Writes a sentence from left to right. Brackets are closed as late as possible.
struct TreeWriter {
  const TreeGrammar& grammar;
  Draws draw;
  SequencePair pair = {};
  std::vector<std::string> labels = {};  // of the open brackets

  void open(const std::string& label) {
    pair.target.push_back("(" + label);
    labels.push_back(label);
  }
  void close_to(std::size_t depth) {
    for (; labels.size() > depth; labels.pop_back()) pair.target.push_back(")" + labels.back());
  }
  void say(std::string word) {
    pair.source.push_back(std::move(word));
    pair.target.push_back(tree_leaf);
  }
  /// An NP that stays open.
  void noun_phrase(int noun) {
    open("NP");
    say("the");
    if (draw.chance(0.3)) say("a" + std::to_string(draw.below(grammar.words)));
    say("n" + std::to_string(noun));
  }

  void sentence() {
    open("S");
    noun_phrase(draw.below(grammar.words));
    if (draw.chance(0.2)) {
      open("PP");
      say("of");
      noun_phrase(draw.below(grammar.words));
    }
    close_to(1);
    open("VP");
    const int verb = draw.below(grammar.words);
    say("v" + std::to_string(verb));
    const auto of_verb = labels.size();
    noun_phrase(draw.below(grammar.words));
    for (int left = draw.below(grammar.phrases + 1); left > 0; --left) {
      constexpr std::array prepositions = {"of", "with", "in"};
      const int preposition = draw.below(3), noun = draw.below(grammar.words);
      bool to_verb = (preposition == 1 && verb % 2 == 0 && noun % 2 == 0) || (preposition == 2 && noun % 3 == 0);
      if (preposition > 0 && draw.chance(grammar.ambiguity)) to_verb = !to_verb;
      if (to_verb) close_to(of_verb);  // else it attaches to the last NP
      open("PP");
      say(prepositions[static_cast<std::size_t>(preposition)]);
      noun_phrase(noun);
    }
    close_to(0);
  }
};

}  // namespace

SequencePair TreeGrammar::generate(Key key) const {
  TreeWriter writer{*this, Draws(key)};
  writer.sentence();
  return std::move(writer.pair);
}

}  // namespace hardgrad::tasks
