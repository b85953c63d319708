// Cloze questions: a simple reader finds every generated answer, and every question numbers its entities anew.
#include <map>
#include <numeric>
#include <set>

#include "experiments/tasks/generated_stories.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::cloze_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("cloze[" + arguments + "]"), Key(seed));
}
Batch whole(const Task& task, Split split) {
  std::vector<int> all(task.size(split));
  std::iota(all.begin(), all.end(), 0);
  return task.batch(split, all);
}
constexpr Split splits[] = {Split::train, Split::heldout, Split::test};

const std::map<std::string, std::string> told = {{"met", "visited"},     {"employed", "hired"},     {"charged", "sued"},
                                                 {"lauded", "praised"},  {"outplayed", "defeated"}, {"wed", "married"},
                                                 {"financed", "funded"}, {"accused", "blamed"}};

/// The entities that fit the question, one per matching sentence: (entity, token of the verb).
std::vector<std::pair<std::string, std::size_t>> read(const ClozeQuestion& asked) {
  const auto& q = asked.question;
  const bool passive = q.size() == 4;
  const auto &subject = passive ? q[3] : q[0], &object = passive ? q[0] : q[2];
  std::vector<std::pair<std::string, std::size_t>> found;
  for (std::size_t t = 1; t + 1 < asked.document.size(); ++t) {
    if (asked.document[t] != told.at(q[1])) continue;
    const auto &who = asked.document[t - 1], &whom = asked.document[t + 1];
    if (subject == placeholder && whom == object) found.emplace_back(who, t);
    if (object == placeholder && who == subject) found.emplace_back(whom, t);
  }
  return found;
}

std::string question_file(const std::string& document, const std::string& question, const std::string& answer) {
  return "http://a\n\n" + document + "\n\n" + question + "\n\n" + answer + "\n\n@entity0:A\n";
}
/// A folder of question files in each split.
std::string three_files(const Folder& folder) {
  for (const auto* split : {"training", "validation", "test"}) std::filesystem::create_directory(folder / split);
  folder.write("training/a.question", question_file("@entity7 met @entity3 in town", "@placeholder saw @entity3", "@entity7"));
  folder.write("training/b.question", question_file("a long story of @entity1", "who is @placeholder", "@entity9"));
  folder.write("validation/a.question", question_file("@entity5 slept", "@placeholder slept", "@entity5"));
  folder.write_gz("test/a.question.gz", question_file("strange words of @entity4", "of @placeholder", "@entity4"));
  return folder.path();
}

}  // namespace

TEST_CASE("exactly one sentence gives the answer of a generated question, and it is the supporting one") {
  const Newsroom newsroom{.facts = 7, .entities = 4, .relations = 3};
  std::set<std::size_t> lengths, answers;
  int verb_alone = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto question = newsroom.report(Key(3) / static_cast<std::uint64_t>(i));
    const auto found = read(question);
    REQUIRE(found.size() == 1);
    CHECK(found[0].first == question.answer);
    CHECK(std::find(question.support.begin(), question.support.end(), found[0].second) != question.support.end());
    CHECK(question.support.size() <= 5);
    lengths.insert(question.question.size());
    answers.insert(found[0].second);
    verb_alone += std::count(question.document.begin(), question.document.end(), told.at(question.question[1])) == 1;
  }
  CHECK(lengths == std::set<std::size_t>{3, 4});
  CHECK(answers.size() > 15);      // at many positions
  CHECK(verb_alone < 0.2 * 2000);  // the verb alone rarely identifies the sentence
}

TEST_CASE("fields: lengths, answers in the document, support, and disjoint splits") {
  const auto task = make("questions=300");
  const auto dims = task->dimensions();
  CHECK(dims.at("answers") == 6);
  std::set<std::uint32_t> ids;
  for (auto split : splits) {
    const auto batch = whole(*task, split);
    REQUIRE(batch.examples() > 10);
    for (int b = 0; b < batch.examples(); ++b) {
      CHECK(ids.insert(batch.id[b]).second);
      const int N = batch.ints("document_length")(b), Q = batch.ints("question_length")(b);
      CHECK(N <= dims.at("document_length"));
      CHECK(Q <= dims.at("question_length"));
      const auto name = task->word("answer", batch.ints("answer")(b));
      bool supported = false;
      int holes = 0;
      for (std::size_t t = 0; t < batch.ints("document").shape()[1]; ++t) {
        const int token = row_of(batch.ints("document"), b)[t], support = row_of(batch.ints("support"), b)[t];
        CHECK((token > 0) == (static_cast<int>(t) < N));
        CHECK(token < dims.at("vocabulary"));
        supported = supported || (support == 1 && task->word("document", token) == name);
      }
      for (int t = 0; t < Q; ++t) holes += task->word("question", row_of(batch.ints("question"), b)[t]) == placeholder;
      CHECK(supported);
      CHECK(holes == 1);
    }
  }
  CHECK(ids.size() == 300);
  CHECK(whole(*make("questions=300"), Split::train).ints("document").storage() ==
        whole(*task, Split::train).ints("document").storage());
  CHECK(whole(*make("questions=300", 2), Split::train).ints("document").storage() !=
        whole(*task, Split::train).ints("document").storage());
}

TEST_CASE("entities are numbered at random: the first in a document may have any number") {
  const auto task = make("questions=3000,facts=1,entities=3,heldout=0,test=0");
  const auto batch = whole(*task, Split::train);
  std::map<int, int> answers;
  for (int answer : batch.ints("answer")) ++answers[answer];
  REQUIRE(answers.size() == 2);  // a document of one fact has two entities
  for (const auto& [number, count] : answers) CHECK(std::abs(count - 1500) < 150);
}

TEST_CASE("files: folders are splits, unknown words, missing answers, numbers of entities") {
  Folder folder;
  const auto task = make("path=" + three_files(folder));
  CHECK(task->size(Split::train) == 1);
  CHECK(task->size(Split::heldout) == 1);
  CHECK(task->size(Split::test) == 1);
  CHECK(has(task->provenance(), "1 left out: their answer is not in the document"));
  CHECK(task->dimensions().at("answers") == 2);  // the maximum in one question
  const auto train = whole(*task, Split::train), test = whole(*task, Split::test);
  std::vector<std::string> words;
  for (int token : train.ints("document")) words.push_back(task->word("document", token));
  CHECK(words[1] == "met");
  CHECK(words[0] == task->word("answer", train.ints("answer").flat(0)));
  CHECK(words[0] != words[2]);
  CHECK(row_of(test.ints("document"), 0)[0] == 1);  // unknown
  CHECK(std::count(train.ints("support").begin(), train.ints("support").end(), 1) == 0);
  CHECK(has(make("length=2,path=" + folder.path())->provenance(), "3 documents cut to 2 tokens; 2 left out"));
}

TEST_CASE("bad settings and files are rejected") {
  Folder folder;
  const auto says = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  CHECK(has(says("path=" + (folder / "none")), "none/training: is not a folder; a folder of question files has training/"));
  std::filesystem::create_directories(folder / "empty/training");
  CHECK(has(says("path=" + (folder / "empty")), "empty/training: holds no question"));
  three_files(folder);
  folder.write("test/b.question", "http://a\n");
  CHECK(has(says("path=" + folder.path()), "test/b.question:1: the file ends before the document"));
  folder.write("test/b.question", "");
  CHECK(has(says("path=" + folder.path()), "test/b.question: is empty"));
  folder.write("test/b.question", "http://a\n\n\xff\n");
  CHECK(has(says("path=" + folder.path()), "test/b.question:3:1: byte 0xFF is not UTF-8"));
  folder.write("test/b.question", "http://a\n\n@entity0 " + std::string(2000000, 'x') + "\n");
  CHECK(has(says("path=" + folder.path()), "test/b.question:3: the line has more than 1048576 bytes"));
  folder.write("test/b.question", question_file("@entity1", "@placeholder", "@entity1"));
  CHECK(has(says("length=1,path=" + folder.path()), "accepted"));
  folder.write("training/a.question", question_file("@entity1", "@placeholder", "@entity2"));
  CHECK(has(says("path=" + folder.path()), "no question is left to train on"));
  CHECK(has(says("heldout=0.6,test=0.6"), "together must be below 1"));
  CHECK(has(says("entities=2"), "entities"));
}

TEST_CASE("accuracy, and hits of the last read") {
  const auto task = make("questions=40,facts=3");
  const auto batch = task->batch(Split::train, {0, 1, 2});
  const auto& support = batch.ints("support");
  const auto names_answer = [&](int b, int t) {
    return task->word("document", row_of(batch.ints("document"), b)[t]) == task->word("answer", batch.ints("answer")(b));
  };
  Observation seen{full<int>({3, 2}, -1), full<int>({3, 4}, 0)};
  for (int b = 0; b < 3; ++b) {
    const int Q = batch.ints("question_length")(b), N = batch.ints("document_length")(b);
    row_of(seen.predictions, b)[b % 2] = b < 2 ? batch.ints("answer")(b) : (batch.ints("answer")(b) + 1) % 6;
    for (int t = 0; t < N; ++t) {
      const bool in_support = row_of(support, b)[t] == 1;
      if (b == 0 && in_support && names_answer(b, t)) row_of(seen.choices, b)[Q - 1] = t;
      if (b == 1 && in_support && !names_answer(b, t)) row_of(seen.choices, b)[Q - 1] = t;
      if (b == 2 && !in_support && !names_answer(b, t)) row_of(seen.choices, b)[Q - 1] = t;
    }
  }
  auto metrics = task->metrics();
  task->score(batch, seen, metrics);
  CHECK(metrics[0].value() == doctest::Approx(2.0 / 3));
  CHECK(metrics[1].value() == doctest::Approx(1.0 / 3));
  CHECK(metrics[2].value() == doctest::Approx(2.0 / 3));
}

TEST_CASE("other questions use the words and entities of training") {
  const auto trained = make("questions=60,facts=3,entities=4,relations=2");
  const auto other = make_task(Spec::parse("cloze[questions=50,facts=2,entities=8]"), Key(2), trained.get());
  auto dims = other->dimensions();
  for (const char* name : {"vocabulary", "answers"}) CHECK(dims.at(name) == trained->dimensions().at(name));
  const auto batch = whole(*other, Split::train);
  int unknown = 0;
  for (const char* field : {"document", "question"})
    for (int word : batch.ints(field)) {
      CHECK(trained->word(field, word) == other->word(field, word));
      unknown += word == 1;
    }
  CHECK(unknown > 0);  // relations that training does not have
  for (int answer : batch.ints("answer")) CHECK((answer >= 0 && answer < dims.at("answers")));
  const auto crowd =
      refusal(Folder(), [&] { make_task(Spec::parse("cloze[questions=50,facts=60,entities=400]"), Key(2), trained.get()); });
  CHECK(has(crowd, "no question is left to train on"));
}

}  // namespace hardgrad::testing::cloze_test
