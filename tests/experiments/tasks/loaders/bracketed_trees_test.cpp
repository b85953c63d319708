// Bracketed trees: their normalised form, and every error.
#include "experiments/tasks/trees.hpp"

#include "experiments/tasks/sequence_task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::bracketed_trees_test {
using namespace tasks;

TEST_CASE("trees may span lines, and tags, functions and empty elements are removed") {
  Folder folder;
  const auto trees = read_bracketed_trees(folder.write("t",
                                                       "( (S (NP-SBJ-1 (DT The) (NN dog))\n  (VP (VBZ wants) (S (NP (-NONE- "
                                                       "*-1)) (VP=2 (TO to) (VP (VB bark)))))\n (. .)) )\n(X hm)"));
  REQUIRE(trees.size() == 2);
  CHECK(joined(trees[0].words) == "The dog wants to bark .");
  CHECK(joined(trees[0].row) == "(S (NP XX XX )NP (VP XX (S (VP XX (VP XX )VP )VP )S )VP XX )S");
  CHECK(brackets_of(trees[0].row, 6));
  CHECK(joined(trees[1].row) == "XX");
}

TEST_CASE("brackets that are not a tree are rejected with line and column") {
  Folder folder;
  const auto says = says_of(folder, "t", [](const std::string& path) { read_bracketed_trees(path); });
  CHECK(has(says("(S (NP (N a))\n"), "t:1:1: a bracket is not closed"));
  CHECK(has(says("(S (N a))\n)\n"), "t:2:1: a bracket is closed that was not opened"));
  CHECK(has(says("(S (NP) (N a))"), "t:1:4: a bracket with neither word nor constituent"));
  CHECK(has(says("a (S (N a))"), "t:1:1: \"a\" is in no bracket"));
  CHECK(has(says("(S (N a b))"), "t:1:9: \"b\" is one too many"));
  CHECK(has(says("(S (N a) b)"), "t:1:10: \"b\" is one too many"));
  CHECK(has(says("(S (N a (N b)))"), "t:1:9: a bracket after a word"));
  CHECK(has(says("((-NONE- *))"), "t: holds no tree"));
  CHECK(has(says("\n"), "t: holds no tree"));
  CHECK(has(says("(S (N \xff))"), "t:1:7"));
  CHECK(has(says(std::string(2000, '(')), "t:1:1001: more than 1000 nested brackets"));
}

TEST_CASE("a damaged file is read as trees or rejected with one line") {
  std::string whole;
  for (int i = 0; i < 12; ++i) whole += "(S (NP (DT the) (NN dog)) (VP (V barks)))\n";
  read_damaged(whole, 7, [](const std::string& path) {
    for (const auto& tree : read_bracketed_trees(path)) CHECK(brackets_of(tree.row, tree.words.size()));
  });
}

}  // namespace hardgrad::testing::bracketed_trees_test
