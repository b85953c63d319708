// SIGMORPHON's files: columns, features, and errors.
#include "experiments/tasks/loaders/pairs.hpp"

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::inflection_test {
using namespace tasks;

TEST_CASE("inflections are lemma, form and features") {
  Folder folder;
  const auto forms = read_inflections(folder.write("f", "gehen\tging\tV;PST;3;SG\r\n\nzu Fu\xc3\x9f\tx\tADV\n"));
  REQUIRE(forms.size() == 2);
  CHECK(forms[0].lemma == "gehen");
  CHECK(forms[0].form == "ging");
  CHECK(forms[0].features == std::vector<std::string>{"V", "PST", "3", "SG"});
  CHECK(forms[1].lemma == "zu Fu\xc3\x9f");
}

TEST_CASE("transcriptions are a word and its sounds") {
  Folder folder;
  const auto words = read_transcriptions(folder.write("f", "abba\ta b  a\n"));
  REQUIRE(words.size() == 1);
  CHECK(words[0].sounds == std::vector<std::string>{"a", "b", "a"});
}

TEST_CASE("lines with other columns are rejected with their place") {
  Folder folder;
  const auto forms = says_of(folder, "f", [](const std::string& path) { read_inflections(path); });
  CHECK(has(forms("a\tb\tc\na\tb\n"), "f:2:1: 2 columns; expected \"lemma TAB form TAB feature;feature\""));
  CHECK(has(forms("a\tb\tc\td\n"), "f:1:1: 4 columns"));
  CHECK(has(forms("a\t\tc\n"), "f:1:3: column 2 is empty"));
  CHECK(has(forms("\n \n"), "f: holds no word"));
  CHECK(has(forms("a\tb\xff\tc\n"), "f:1:4"));
  const auto path = folder.write("w", "word\n");
  CHECK(has(refusal(folder, [&] { read_transcriptions(path); }), "w:1:1: 1 columns; expected \"word TAB s o u n d s\""));
}

}  // namespace hardgrad::testing::inflection_test
