// Tab files, parallel texts and CMUdict: valid and invalid.
#include "experiments/tasks/loaders/pairs.hpp"

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::parallel_text_test {
using namespace tasks;

TEST_CASE("a tab file: the first two columns are read") {
  Folder folder;
  const auto pairs = read_tab_pairs(folder.write_gz("deu.txt.gz", "Hi.\tHallo!\tCC-BY\n\nRun!\tLauf!"));
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].first == "Hi.");
  CHECK(pairs[0].second == "Hallo!");
  CHECK(pairs[1].second == "Lauf!");
}

TEST_CASE("an invalid tab file is rejected with its place") {
  Folder folder;
  const auto says = [&](const std::string& text) { return refusal(folder, [&] { read_tab_pairs(folder.write("t", text)); }); };
  CHECK(has(says("Hi.\tHallo!\nRun!\n"), "t:2:5: one column only"));
  CHECK(has(says("\tHallo!\n"), "t:1:1: the first column is empty"));
  CHECK(has(says("Hi.\t \tx\n"), "t:1:5: the second column is empty"));
  CHECK(has(says("\n\n"), "t: holds no sentence pair"));
}

TEST_CASE("parallel texts are paired line by line") {
  Folder folder;
  const auto one = folder.write("one", "a\n\nc\n"), two = folder.write_gz("two.gz", "A\nB\nC\n");
  const auto pairs = read_parallel_text(one, two);
  REQUIRE(pairs.size() == 3);
  CHECK(pairs[1].first == "");
  CHECK(pairs[1].second == "B");
  CHECK(pairs[2].first == "c");
  const auto longer = folder.write("longer", "A\nB\nC\nD\n");
  CHECK(has(refusal(folder, [&] { read_parallel_text(one, longer); }), "longer: has 4 lines, but one has 3"));
  const auto blank = folder.write("blank", "\n\n\n");
  CHECK(has(refusal(folder, [&] { read_parallel_text(one, blank); }), "holds no sentence pair"));
}

TEST_CASE("CMUdict: variants, comments and phonemes") {
  Folder folder;
  const auto words = read_cmudict(folder.write("d", ";;; a comment\n'em AH0 M\ndail(2) D OY1 L # org, irish\n"));
  REQUIRE(words.size() == 2);
  CHECK(words[0].word == "'em");
  CHECK(words[0].variant == 1);
  CHECK(words[1].word == "dail");
  CHECK(words[1].variant == 2);
  CHECK(words[1].phonemes == std::vector<std::string>{"D", "OY1", "L"});
  const auto says = [&](const std::string& text) { return refusal(folder, [&] { read_cmudict(folder.write("d", text)); }); };
  CHECK(has(says("word\n"), "d:1:5: a word without phonemes"));
  CHECK(has(says("a AH0\nword W er1 D\n"), "d:2:8: \"er1\" is not a phoneme"));
  CHECK(has(says("word(x) W ER1 D\n"), "d:1:5: expected a variant like word(2)"));
  CHECK(has(says("word(2 W ER1 D\n"), "d:1:5: expected a variant like word(2)"));
  CHECK(has(says("# nothing\n"), "d: holds no word"));
}

}  // namespace hardgrad::testing::parallel_text_test
