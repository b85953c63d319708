// Question files of CNN / Daily Mail: a valid one, every error of a part, and arbitrary bytes.
#include "experiments/tasks/loaders/questions.hpp"

#include <random>

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::cnn_question_test {
using namespace tasks;

namespace {

const std::vector<std::string> good{"http://example.org/1",
                                    "",
                                    "( @entity2 ) @entity0 met @entity11 .",
                                    "",
                                    "@placeholder saw @entity11",
                                    "",
                                    "@entity0",
                                    "",
                                    "@entity0:Mary",
                                    "@entity2:CNN",
                                    "@entity11:John: a name"};

std::vector<std::string> with(std::size_t line, const std::string& text) {
  auto lines = good;
  lines.at(line - 1) = text;
  return lines;
}
std::string says(std::vector<std::string> lines) {
  Folder folder;
  const TextFile text{"a.question", std::move(lines)};
  return refusal(folder, [&] { parse_cnn_question(text); });
}

}  // namespace

TEST_CASE("a question file's parts are read") {
  const auto question = parse_cnn_question({"a.question", good});
  CHECK(question.document == std::vector<std::string>{"(", "@entity2", ")", "@entity0", "met", "@entity11", "."});
  CHECK(question.question == std::vector<std::string>{"@placeholder", "saw", "@entity11"});
  CHECK(question.answer == "@entity0");
  CHECK(question.support.empty());
  auto bare = good;
  bare.resize(7);  // entity names are optional
  CHECK(parse_cnn_question({"a.question", bare}).answer == "@entity0");
  CHECK(parse_cnn_question({"a.question", with(5, "@placeholder saw what @placeholder is")}).question.size() == 5);
  CHECK(parse_cnn_question({"a.question", with(3, "nothing is here")}).document.size() == 3);  // the task excludes it
  CHECK(is_entity("@entity0"));
  for (const auto* token : {"@entity", "entity0", "@entity0x", "@placeholder", "", "@entity1234567890"})
    CHECK(!is_entity(token));
}

TEST_CASE("every wrong part is rejected with its place") {
  CHECK(has(says(with(2, "text")), "a.question:2:1: expected a blank line before the document"));
  CHECK(has(says(with(3, "")), "a.question:3:1: a blank line where the document should be"));
  CHECK(has(says(with(4, "more")), "a.question:4:1: expected a blank line before the question"));
  CHECK(
      has(says(with(5, "who saw @entity1")), "a.question:5:1: a question must have @placeholder where the entity is missing"));
  CHECK(has(says(with(7, "Mary")), "a.question:7:1: the answer must be an entity like @entity12, got \"Mary\""));
  CHECK(has(says(with(9, "@entity0 Mary")), "a.question:9:1: expected an entity and its name"));
  CHECK(has(says(with(10, "Mary:@entity0")), "a.question:10:1: expected an entity and its name"));
  for (std::size_t lines = 0; lines < 7; ++lines) {
    auto part = good;
    part.resize(lines);
    CAPTURE(lines);
    CHECK(has(says(part), "the file ends before the "));
    CHECK(has(says(part), "is it truncated?"));
  }
}

TEST_CASE("a damaged file is read or rejected with one line") {
  Folder folder;
  std::string bytes;
  for (const auto& line : good) bytes += line + "\n";
  std::mt19937 random(7);
  int refused = 0, read = 0;
  for (int i = 0; i < 3000; ++i) {
    auto damaged = bytes;
    for (auto flips = random() % 4; flips > 0; --flips) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    if (random() % 3 == 0) damaged.resize(random() % damaged.size());
    const auto path = folder.write("b.question", damaged);
    const auto what = refusal(folder, [&] { parse_cnn_question(read_text(path)); });
    CHECK((what == "accepted" || what.starts_with("b.question")));
    ++(what == "accepted" ? read : refused);
  }
  CHECK(refused > 500);
  CHECK(read > 500);
}

}  // namespace hardgrad::testing::cnn_question_test
