#include "experiments/tasks/trees.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {

std::optional<std::multiset<Bracket>> brackets_of(const std::vector<std::string>& row, std::size_t words) {
  std::multiset<Bracket> brackets;
  std::vector<std::pair<std::string, int>> open;  // label, first word
  int word = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto& symbol = row[i];
    if (i > 0 && open.empty()) return {};  // a second root
    if (opens(symbol)) {
      open.emplace_back(symbol.substr(1), word);
    } else if (symbol == tree_leaf) {
      ++word;
    } else {
      if (open.empty() || symbol != ")" + open.back().first || open.back().second == word) return {};
      brackets.emplace(open.back().first, open.back().second, word);
      open.pop_back();
    }
  }
  if (row.empty() || !open.empty() || static_cast<std::size_t>(word) != words) return {};
  return brackets;
}

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

namespace {

struct Node {
  std::size_t line, column;  // of its bracket
  std::string label = {}, word = {};
  std::vector<std::string> row = {};  // symbols of its contents
  bool constituents = false;
};

std::string category(const std::string& label) { return label.substr(0, label.find_first_of("-=", 1)); }

class TreeReader {
 public:
  explicit TreeReader(std::string path) : path_(std::move(path)) {}

  void open(std::size_t line, std::size_t column) {
    if (open_.size() >= deepest)
      refuse_input(path_, line, column, fmt::format("more than {} nested brackets; is the file damaged?", deepest));
    if (!open_.empty()) {
      if (!open_.back().word.empty()) refuse_input(path_, line, column, "a bracket after a word: expected \")\"");
      open_.back().constituents = true;
    }
    open_.push_back({line, column});
  }
  void atom(std::string text, std::size_t line, std::size_t column) {
    if (open_.empty())
      refuse_input(path_, line, column,
                   fmt::format("\"{}\" is in no bracket; expected \"(S (NP ...) ...)\"", text.substr(0, 40)));
    auto& node = open_.back();
    if (node.constituents || !node.word.empty())
      refuse_input(path_, line, column, fmt::format("\"{}\" is one too many: expected \"(tag word)\"", text.substr(0, 40)));
    (node.label.empty() ? node.label : node.word) = std::move(text);
  }
  void close(std::size_t line, std::size_t column) {
    if (open_.empty()) refuse_input(path_, line, column, "a bracket is closed that was not opened");
    auto node = std::move(open_.back());
    open_.pop_back();
    if (!node.constituents && node.word.empty())
      refuse_input(path_, node.line, node.column, "a bracket with neither word nor constituent");
    if (!node.constituents) {
      if (node.label != "-NONE-") {
        node.row = {tree_leaf};
        words_.push_back(std::move(node.word));
      }
    } else if (!node.row.empty() && !node.label.empty()) {
      node.row.insert(node.row.begin(), "(" + category(node.label));
      node.row.push_back(")" + category(node.label));
    }
    if (!open_.empty()) {
      auto& row = open_.back().row;
      row.insert(row.end(), node.row.begin(), node.row.end());
      return;
    }
    if (!words_.empty()) trees_.push_back({std::move(words_), std::move(node.row)});
    words_.clear();
  }
  std::vector<ReadTree> finish() && {
    if (!open_.empty()) refuse_input(path_, open_.back().line, open_.back().column, "a bracket is not closed");
    if (trees_.empty()) refuse_input(path_, 0, 0, "holds no tree");
    return std::move(trees_);
  }

 private:
  static constexpr std::size_t deepest = 1000;
  std::string path_;
  std::vector<Node> open_;
  std::vector<std::string> words_;
  std::vector<ReadTree> trees_;
};

}  // namespace

std::vector<ReadTree> read_bracketed_trees(const std::string& path) {
  const auto text = read_text(path);
  TreeReader reader(path);
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string_view line = text.lines[i];
    for (std::size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
      if (line[at] == '(') {
        reader.open(i + 1, ++at);
      } else if (line[at] == ')') {
        reader.close(i + 1, ++at);
      } else {
        const auto end = std::min(line.find_first_of(" \t()", at), line.size());
        reader.atom(std::string(line.substr(at, end - at)), i + 1, at + 1);
        at = end;
      }
    }
  }
  return std::move(reader).finish();
}

}  // namespace hardgrad::tasks
