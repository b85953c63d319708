// Labelled pairs of sentences: valid lines, and every error of a line.
#include "experiments/tasks/loaders/pairs.hpp"

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::labelled_pairs_test {
using namespace tasks;

TEST_CASE("a labelled pair is a line of three columns, and empty lines are skipped") {
  Folder folder;
  const auto pairs = read_labelled_pairs(folder.write("p", "yes\tA dog.\tA cat.\r\n\n  \nno\tone\ttwo words"));
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].label == "yes");
  CHECK(pairs[0].first == "A dog.");
  CHECK(pairs[0].second == "A cat.");
  CHECK(pairs[1].second == "two words");
}

TEST_CASE("invalid labelled pairs are rejected with line and column") {
  Folder folder;
  const auto says = says_of(folder, "p", [](const std::string& path) { read_labelled_pairs(path); });
  CHECK(has(says("a\tb\tc\na\tb\n"), "p:2:4: fewer than three columns: expected \"label TAB sentence TAB sentence\""));
  CHECK(has(says("a\n"), "p:1:2: fewer than three columns"));
  CHECK(has(says("a\tb\tc\td\n"), "p:1:6: more than three columns"));
  CHECK(has(says("\tb\tc\n"), "p:1:1: the label is empty"));
  CHECK(has(says("a\t \tc\n"), "p:1:3: the first sentence is empty"));
  CHECK(has(says("a\tb\t \n"), "p:1:5: the second sentence is empty"));
  CHECK(has(says("a\tb\xff\tc\n"), "p:1:4"));
  CHECK(has(says(""), "p: "));
  CHECK(has(says("\n\n"), "p: holds no pair of sentences"));
  CHECK(has(says("a\t" + std::string(1 << 20, 'b') + "\tc\n"), "p:1: the line has more than 1048576 bytes"));
  std::string many;
  for (int i = 0; i < 1001; ++i) many += std::to_string(i) + "\tb\tc\n";
  CHECK(has(says(many), "p:1001:1: more than 1000 different labels: is the first column the label?"));
  CHECK(has(refusal(folder, [&] { read_labelled_pairs(folder / "none"); }), "none"));
}

TEST_CASE("a damaged file of labelled pairs is read or rejected with one line") {
  std::string whole;
  for (int i = 0; i < 40; ++i) whole += std::string(i % 2 ? "yes" : "no") + "\tein Fu\xc3\x9f\tein Schuh\n";
  read_damaged(whole, 3, [](const std::string& path) { read_labelled_pairs(path); });
}

}  // namespace hardgrad::testing::labelled_pairs_test
