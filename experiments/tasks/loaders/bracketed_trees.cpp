#include "experiments/tasks/loaders/bracketed_trees.hpp"

#include <fmt/format.h>

#include <string_view>

#include "experiments/tasks/linear_tree.hpp"
#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {
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
