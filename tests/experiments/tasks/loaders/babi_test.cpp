// bAbI files: valid ones, and every error of a line.
#include "experiments/tasks/loaders/questions.hpp"

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::babi_test {
using namespace tasks;

namespace {

TextFile text(std::vector<std::string> lines) { return {"qa.txt", std::move(lines)}; }
std::string babi_refusal(std::vector<std::string> lines) {
  Folder folder;
  return refusal(folder, [&] { parse_babi(text(std::move(lines))); });
}

}  // namespace

TEST_CASE("stories, questions, answers and supporting facts are read") {
  const auto babi = parse_babi(text({"1 Mary moved to the bathroom.", "2 Where is Mary? \tbathroom\t1", "3 John left.",
                                     "4 What has John? \tFootball,milk\t1 3", "", "1 A b.", "2 Is it?\tyes"}));
  REQUIRE(babi.questions.size() == 3);
  CHECK(babi.sentences[0] == std::vector<std::string>{"mary", "moved", "to", "the", "bathroom"});
  CHECK(babi.questions[0].words == std::vector<std::string>{"where", "is", "mary"});
  CHECK(babi.questions[0].end == 1);
  CHECK(babi.questions[1].answer == "football,milk");
  CHECK(babi.questions[1].support == std::vector<std::size_t>{0, 1});
  CHECK(babi.questions[2].story == 1);
  CHECK(babi.questions[2].first == 2);
  CHECK(babi.questions[2].end == 3);
  CHECK(babi.questions[2].support.empty());
}

TEST_CASE("every wrong line is rejected with its place") {
  const std::string mary = "1 Mary moved.";
  CHECK(has(babi_refusal({"Mary moved."}), "qa.txt:1:1: a line must start with its number"));
  CHECK(has(babi_refusal({"1Mary moved."}), "qa.txt:1:1: a line must start with its number"));
  CHECK(has(babi_refusal({"-1 Mary moved."}), "qa.txt:1:1: a line must start with its number"));
  CHECK(has(babi_refusal({"99999999999999999999999 Mary."}), "qa.txt:1:1: a line must start with its number"));
  CHECK(has(babi_refusal({"2 Mary moved."}), "qa.txt:1:1: the first line must have number 1, got 2"));
  CHECK(has(babi_refusal({mary, "3 Mary moved."}), "qa.txt:2:1: expected number 2, or 1 for a new story, got 3"));
  CHECK(has(babi_refusal({mary, "2 Where is Mary?"}), "qa.txt:2:17: a question without an answer: expected a tab"));
  CHECK(has(babi_refusal({mary, "2 Where is Mary? bathroom 1"}),  // spaces instead of tabs
            "qa.txt:2:17: a question without an answer: expected a tab"));
  CHECK(has(babi_refusal({mary, "2 Where is Mary? \t\t1"}), "qa.txt:2:19: an empty answer"));
  CHECK(has(babi_refusal({"1 Where is Mary? \tbathroom\t1"}), "qa.txt:1:3: a question before any sentence"));
  CHECK(has(babi_refusal({mary, "2 Where? \tx\t7"}), "qa.txt:2:13: the supporting line 7 is not an earlier sentence"));
  CHECK(has(babi_refusal({mary, "2 Where? \tx\t1", "3 Where? \tx\t2"}), "qa.txt:3:13: the supporting line 2"));
  CHECK(has(babi_refusal({mary, "2 Where? \tx\tone"}), "qa.txt:2:13: expected the number of a supporting line"));
  CHECK(has(babi_refusal({"1 ..."}), "qa.txt:1:3: a sentence without words"));
  CHECK(has(babi_refusal({mary, "2 \tyes\t1"}), "qa.txt:2:3: a sentence without words"));
  CHECK(has(babi_refusal({"1 "}), "a sentence without words"));
  CHECK(has(babi_refusal({mary}), "qa.txt: holds no question"));
  std::string endless = "1";
  for (int i = 0; i < 300; ++i) endless += " word";
  CHECK(has(babi_refusal({endless}), "qa.txt:1:3: a sentence of 300 words"));
}

}  // namespace hardgrad::testing::babi_test
