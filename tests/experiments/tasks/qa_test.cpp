// Question answering: a simple reader finds every generated answer and its support in the story.
#include <map>
#include <numeric>
#include <set>

#include "core/random/randomness.hpp"
#include "experiments/tasks/generated_stories.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::qa_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("qa[" + arguments + "]"), Key(seed));
}
Batch whole(const Task& task, Split split) {
  std::vector<int> all(task.size(split));
  std::iota(all.begin(), all.end(), 0);
  return task.batch(split, all);
}
constexpr Split splits[] = {Split::train, Split::heldout, Split::test};

// Reads a story literally: the position of each person and the owner of each object.
std::string place_of(const std::string& what, const BabiStories& stories, const BabiQuestion& question) {
  std::map<std::string, std::string> place, holder;
  for (auto s = question.first; s < question.end; ++s) {
    const auto& words = stories.sentences[s];
    const auto& who = words.front();
    const bool takes = words.back() == "there";
    const bool walks = !takes && words[words.size() - 3] == "to";
    const auto thing = words[words.size() - (takes ? 2 : 1)];
    if (walks)
      place[who] = words.back();
    else if (takes)
      holder[thing] = who;
    else
      holder[thing] = "", place[thing] = place[who];
    for (const auto& [held, by] : holder)
      if (!by.empty()) place[held] = place[by];
  }
  return place[what];
}

}  // namespace

TEST_CASE("generated answers follow from the story, and the facts suffice") {
  for (int facts : {1, 2}) {
    const StoryWorld world{.stories = 100, .questions = 5, .supporting_facts = facts};
    const auto stories = parse_babi(world.tell(Key(5)));
    CHECK(stories.questions.size() == 500);
    int missed = 0;  // answers that a reader without the last sentence misses: the check below can fail
    for (auto question : stories.questions) {
      --question.end;
      missed += place_of(question.words.back(), stories, question) != question.answer;
    }
    CHECK(missed > 50);
    for (const auto& question : stories.questions) {
      CHECK(place_of(question.words.back(), stories, question) == question.answer);
      REQUIRE(static_cast<int>(question.support.size()) == facts);
      bool names_answer = false, names_subject = false;
      for (auto s : question.support)
        for (const auto& word : stories.sentences[s]) {
          names_answer = names_answer || word == question.answer;
          names_subject = names_subject || word == question.words.back();
        }
      CHECK(names_answer);
      CHECK(names_subject);
    }
    CHECK(world.tell(Key(5)).lines == world.tell(Key(5)).lines);
    CHECK(world.tell(Key(5)).lines != world.tell(Key(6)).lines);
  }
}

TEST_CASE("batches are padded, oldest sentence first, and a story is in one split") {
  const auto task = make("stories=100,memory=4");
  const auto dims = task->dimensions();
  CHECK(dims.at("sentences") == 4);
  CHECK(dims.at("words") == 6);
  CHECK(dims.at("answers") == 6);
  std::set<std::uint32_t> ids;
  std::map<std::uint32_t, Split> story_split;
  for (auto split : splits) {
    const auto batch = whole(*task, split);
    REQUIRE(batch.id.size() > 0);
    CHECK(batch.ints("story").shape()[2] == 6);
    CHECK(batch.ints("question").shape()[1] == 6);
    for (std::size_t b = 0; b < batch.id.size(); ++b) {
      CHECK(ids.insert(batch.id[b]).second);
      CHECK(story_split.try_emplace(batch.id[b] / 5, split).first->second == split);  // 5 questions per story
      const int N = batch.ints("story_length")(b);
      CHECK(N >= 2);
      for (int n = 0; n < static_cast<int>(batch.ints("story").shape()[1]); ++n)
        CHECK((row_of(batch.ints("story"), b)[n * 6] > 0) == (n < N));
      CHECK(batch.ints("answer")(b) < 6);
    }
  }
  CHECK(ids.size() == 500);
  CHECK(whole(*make("stories=100,memory=4"), Split::train).ints("story").storage() ==
        whole(*task, Split::train).ints("story").storage());
}

TEST_CASE(
    "files: the test file is found, memory keeps the last sentences, words and answers unseen in training do "
    "not crash") {
  Folder folder;
  const auto train = folder.write("qa_train.txt", "1 A b.\n2 C d.\n3 E f.\n4 Where is A?\tx\t1\n5 G h.\n6 Where is G?\ty\t5\n");
  folder.write("qa_test.txt", "1 Unheard of.\n2 Where?\tz\t1\n");
  const auto task = make("memory=2,heldout=0,path=" + train);
  CHECK(task->size(Split::train) == 2);
  CHECK(task->size(Split::heldout) == 0);
  CHECK(task->size(Split::test) == 1);
  CHECK(task->dimensions().at("answers") == 3);
  for (int answer = 0; answer < 3; ++answer)  // also answers without a story
    CHECK(task->word("story", task->dimensions().at("answer_word") + answer) == task->word("answer", answer));
  const auto batch = whole(*task, Split::train);
  CHECK(batch.ints("story_length").storage() == std::vector<int>{2, 2});
  CHECK(batch.ints("support").storage() == std::vector<int>{0, 0, 0, 1});  // the first question's support is beyond the memory
  const auto test = whole(*task, Split::test);
  CHECK(row_of(test.ints("story"), 0)[0] == 1);  // unknown
  CHECK(test.ints("answer").flat(0) == 2);
  CHECK(test.id[0] == 2);
  CHECK(has(task->provenance(), "2 stories cut"));
}

TEST_CASE("bad settings and files are rejected") {
  Folder folder;
  const auto says = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  const auto alone = folder.write("alone_train.txt", "1 A.\n2 B?\tx\t1\n"), odd = folder.write("odd.txt", "1 A.\n2 B?\tx\t1\n");
  CHECK(has(says("path=" + alone), "there is no test file alone_test.txt; give one with test_path=FILE"));
  CHECK(has(says("path=" + odd), "no test file can be guessed"));
  CHECK(has(says("path=" + (folder / "none_train.txt")), "none_train.txt: there is no such file"));
  CHECK(has(says("test_path=" + odd), "test_path is given without path"));
  CHECK(has(says("heldout=0.6,test=0.6"), "together must be below 1"));
}

TEST_CASE("accuracy and hits on supporting facts") {
  const auto task = make("stories=20");
  const auto batch = task->batch(Split::train, {0, 1});
  const auto& support = batch.ints("support");
  Observation seen{zeros<int>({2, 1}), full<int>({2, 2}, -1)};
  seen.predictions.storage() = {batch.ints("answer").flat(0), batch.ints("answer").flat(1) + 1};
  for (std::size_t n = 0; n < support.shape()[1]; ++n)
    if (row_of(support, 0)[n])
      row_of(seen.choices, 0)[1] = static_cast<int>(n);
    else
      row_of(seen.choices, 0)[0] = static_cast<int>(n);
  for (std::size_t n = 0; n < support.shape()[1]; ++n)
    if (!row_of(support, 1)[n]) row_of(seen.choices, 1)[0] = static_cast<int>(n);
  auto metrics = task->metrics();
  task->score(batch, seen, metrics);
  CHECK(metrics[0].value() == 0.5);
  CHECK(metrics[1].value() == 0.5);
}

TEST_CASE("indices of a batch map to words: the supporting facts contain the answer") {
  const auto task = make("stories=50,supporting_facts=2");
  const auto batch = whole(*task, Split::train);
  const auto& story = batch.ints("story");
  const auto sentences = story.shape()[1], words = story.shape()[2];
  int named = 0;
  for (std::size_t b = 0; b < batch.id.size(); ++b) {
    const auto answer = task->word("answer", batch.ints("answer")(b));
    bool found = false;
    for (std::size_t s = 0; s < sentences; ++s)
      for (std::size_t w = 0; w < words; ++w)
        found = found ||
                (row_of(batch.ints("support"), b)[s] == 1 && task->word("story", row_of(story, b)[s * words + w]) == answer);
    CHECK(found);
    named += !answer.empty();
  }
  CHECK(named == static_cast<int>(batch.id.size()));
  CHECK(task->word("story", 0).empty());
  CHECK(task->word("support", 1).empty());
}

TEST_CASE("a folder of files is one task, with an accuracy per file") {
  Folder folder;
  folder.write("qa10_x_train.txt", "1 A b.\n2 Where?\tx\t1\n");
  folder.write("qa10_x_test.txt", "1 A c.\n2 Where?\ty\t1\n1 A b.\n2 Where?\tx\t1\n");
  folder.write("qa2_z_train.txt", "1 D e.\n2 When?\tz\t1\n");
  folder.write("qa2_z_test.txt", "1 D e.\n2 When?\tx\t1\n");
  const auto task = make("heldout=0,path=" + folder.path());
  CHECK(task->size(Split::train) == 2);
  CHECK(task->size(Split::test) == 3);
  CHECK(task->dimensions().at("answers") == 3);
  CHECK(task->dimensions().at("vocabulary") ==
        2 + 3 + 6);  // x, y, z; a, b, d, e, when, where: the training words of both files
  const auto batch = whole(*task, Split::test);
  Observation seen{shaped<int>({3, 1}, std::vector<int>(3, 0)), full<int>({3, 1}, -1)};  // predicts always x
  auto metrics = task->metrics();
  task->score(batch, seen, metrics);
  REQUIRE(metrics.size() == 4);
  CHECK(metrics[0].value() == doctest::Approx(2.0 / 3));
  CHECK(metrics[2].name == "accuracy_qa2");
  CHECK(metrics[2].value() == 1);
  CHECK(metrics[3].name == "accuracy_qa10");
  CHECK(metrics[3].value() == 0.5);
  Folder empty;
  CHECK(has(refusal(empty, [&] { make("path=" + empty.path()); }), "holds no file of the name ..._train.txt"));
  CHECK(has(refusal(folder, [&] { make("test_path=x,path=" + folder.path()); }),
            "the test files of a folder are found by their names"));
}

TEST_CASE("random time noise inserts empty sentences, only in training, anew every epoch") {
  const auto plain = make("stories=60,memory=10"), noisy = make("stories=60,memory=10,time_noise=0.2");
  CHECK(noisy->dimensions().at("sentences") == plain->dimensions().at("sentences") + 2);
  std::vector<int> all(plain->size(Split::train));
  std::iota(all.begin(), all.end(), 0);
  const auto still = whole(*noisy, Split::train);
  CHECK(still.integers.at("story").storage() == whole(*plain, Split::train).ints("story").storage());
  CHECK(plain->training_batch(all, Key(1)).ints("story").storage() == still.ints("story").storage());
  const auto one = noisy->training_batch(all, Key(1)), other = noisy->training_batch(all, Key(2));
  CHECK(one.ints("story").storage() == noisy->training_batch(all, Key(1)).ints("story").storage());
  CHECK(one.ints("story").storage() != other.ints("story").storage());
  const std::size_t W = 6;
  int empty = 0, sentences = 0;
  for (std::size_t b = 0; b < all.size(); ++b) {
    CHECK(one.ints("story_length")(b) <= noisy->dimensions().at("sentences"));
    std::vector<int> left, support;  // without the empty sentences the story is unchanged
    for (int n = 0; n < one.ints("story_length")(b); ++n) {
      const auto* sentence = &row_of(one.ints("story"), b)[n * W];
      if (sentence[0] == 0) {
        ++empty;
        CHECK(row_of(one.ints("support"), b)[n] == 0);
        continue;
      }
      left.insert(left.end(), sentence, sentence + W);
      support.push_back(row_of(one.ints("support"), b)[n]);
    }
    sentences += static_cast<int>(support.size());
    const auto story = row_of(still.ints("story"), b).first(left.size());
    CHECK(static_cast<int>(support.size()) == still.ints("story_length")(b));
    CHECK(std::equal(left.begin(), left.end(), story.begin()));
    CHECK(std::equal(support.begin(), support.end(), row_of(still.ints("support"), b).begin()));
  }
  CHECK(empty > sentences / 10);
  CHECK(empty < sentences / 3);
}

TEST_CASE("other stories use the words, answers and memory of training") {
  const auto trained = make("stories=40,people=4,places=4");
  const auto same = make_task(Spec::parse("qa[stories=9,people=2,places=3,questions=20]"), Key(2), trained.get());
  auto dims = same->dimensions();
  dims["words"] = trained->dimensions().at("words");
  CHECK(dims == trained->dimensions());
  const auto batch = whole(*same, Split::train);
  for (int word : batch.ints("story")) CHECK(trained->word("story", word) == same->word("story", word));
  CHECK_THROWS_AS(make_task(Spec::parse("qa[stories=9,places=8]"), Key(2), trained.get()), InputError);
}

}  // namespace hardgrad::testing::qa_test
