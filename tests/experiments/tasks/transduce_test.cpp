// Transduction: generated spelling, CMUdict and SIGMORPHON's files, and errors relative to the closest answer.
#include <map>
#include <numeric>
#include <set>

#include "core/support/text_metrics.hpp"
#include "experiments/tasks/generated_pairs.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::transduce_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, const Task* trained = nullptr) {
  return make_task(Spec::parse("transduce[" + arguments + "]"), Key(1), trained);
}
Batch whole(const Task& task, Split split) {
  std::vector<int> all(task.size(split));
  std::iota(all.begin(), all.end(), 0);
  return task.batch(split, all);
}
std::string text(const Task& task, const Batch& batch, const std::string& field, std::size_t b) {
  std::string words;
  for (int number : row_of(batch.ints(field), b))
    if (const auto word = task.word(field, number); !word.empty()) words += word + " ";
  return words;
}

}  // namespace

TEST_CASE("edit distance by hand") {
  const auto distance = [](std::vector<int> a, std::vector<int> b) { return edit_distance(a, b); };
  CHECK(distance({}, {}) == 0);
  CHECK(distance({1, 2, 3}, {}) == 3);
  CHECK(distance({}, {1, 2}) == 2);
  CHECK(distance({1, 2, 3, 4}, {1, 3, 4}) == 1);
  CHECK(distance({1, 2, 3}, {2, 3, 4}) == 2);
  CHECK(distance({1, 2, 3}, {3, 2, 1}) == 2);
}

TEST_CASE("the generated spelling follows its rules") {
  const auto sounds = [](const std::string& letters) { return joined(pronounced(letters).target); };
  CHECK(sounds("mat") == "M AE T");
  CHECK(sounds("mate") == "M EY T");
  CHECK(sounds("shade") == "SH EY D");
  CHECK(sounds("cece") == "S IY S");
  CHECK(sounds("cocci") == "K AA K IH");
  CHECK(sounds("batto") == "B AE T AA");
  CHECK(sounds("me") == "M EH");  // not silent: no long vowel before it
  const auto word = pronounced("chade");
  CHECK(word.gold.sure == std::set<Link>{{0, 0}, {2, 1}, {3, 2}});
  std::set<std::string> heard;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto made = Spelling{3}.generate(Key(2) / i);
    REQUIRE(made.gold.sure.size() == made.target.size());
    heard.insert(made.target.begin(), made.target.end());
  }
  CHECK(heard.size() == 25);  // 15 consonants, 10 vowels
}

TEST_CASE("CMUdict: a word with two pronunciations is trained with both, and tested once") {
  Folder folder;
  const auto path = folder.write("d", "ab AE1 B\nab(2) AH0 B B\nba B AA1 # x\nabba AE B AA\n");
  const auto trained = make("data=cmudict,heldout=0,test=0,path=" + path);
  CHECK(trained->size(Split::train) == 4);
  CHECK(trained->dimensions().at("target_vocabulary") == 4 + 4);
  CHECK(make("data=cmudict,heldout=0,test=0,variants=false,path=" + path)->size(Split::train) == 3);
  CHECK(make("data=cmudict,heldout=0,test=0,stress=true,path=" + path)->dimensions().at("target_vocabulary") == 4 + 6);
  CHECK(make("data=cmudict,heldout=0,test=0,limit=2,path=" + path)->size(Split::train) >= 2);
  CHECK(has(make("data=cmudict,heldout=0,test=0,limit=2,path=" + path)->provenance(), "beyond the limit"));
  CHECK(has(make("data=cmudict,heldout=0,test=0,max_length=2,path=" + path)->provenance(),
            "4 words and answers read; left out: 2 of more than 2"));

  int asked = 0;
  for (int test = 10; test < 60; ++test) {  // some splits exclude `ab` from training
    const auto task = make("data=cmudict,heldout=0,test=" + std::to_string(test / 100.0) + ",path=" + path);
    const auto batch = whole(*task, Split::test);
    for (std::size_t b = 0; b < batch.id.size(); ++b) {
      if (batch.id[b] != 0) continue;
      ++asked;
      CHECK(task->size(Split::train) + task->size(Split::test) == 3);  // the other pronunciation is in neither split
      // Both pronunciations are correct. The second may have phonemes that are unknown in training.
      const auto own = task->batch(Split::test, {static_cast<int>(b)});
      Observation right{own.ints("target"), zeros<int>({1, 0})};
      auto metrics = task->metrics();
      task->score_decoded(own, right, metrics);
      CHECK(value(metrics, "word_error_rate") == 0);
      CHECK(value(metrics, "symbol_error_rate") == 0);
    }
  }
  CHECK(asked > 0);
}

TEST_CASE("development and test files of their own: the answers of a word are those of its own file") {
  Folder folder;
  std::string lines;
  for (char c = 'a'; c < 'u'; ++c) lines += std::string(1, c) + " B AA " + (c % 2 ? "B" : "AA") + "\n";
  const auto path = folder.write("train", lines), test = folder.write("test", "b B\nb(2) AA\nzzzz B B B B\n");
  const auto task =
      make("data=cmudict,max_length=3,path=" + path + ",dev_path=" + folder.write("dev", "c AA\n") + ",test_path=" + test);
  CHECK(task->size(Split::train) == 20);
  CHECK(task->size(Split::heldout) == 1);
  CHECK(task->size(Split::test) == 2);  // `b` is judged once, and max_length selects training words only
  CHECK(has(task->provenance(), "train, dev: "));
  const auto batch = whole(*task, Split::test);
  for (std::size_t b = 0; b < 2; ++b) {
    if (batch.ints("source_length")(b) > 1) continue;
    const auto errors = [&](int label) {
      auto metrics = task->metrics();
      task->score_decoded(task->batch(Split::test, {static_cast<int>(b)}), {full<int>({1, 1}, label), zeros<int>({1, 0})},
                          metrics);
      return value(metrics, "word_error_rate");
    };
    int right = 0;  // B or AA, not the answer of `b` in the training file
    for (int label = 4; label < task->dimensions().at("target_vocabulary"); ++label) right += errors(label) == 0;
    CHECK(right == 2);
  }
  CHECK(has(refusal(folder, [&] { make("dev_path=" + test); }), "dev_path is given, but data=generated"));
}

TEST_CASE("errors are counted relative to the closest answer") {
  Folder folder;
  std::string lines = "ab A B\nab(2) B B AA AA\n";
  for (char c = 'c'; c < 'z'; ++c)
    lines += std::string(1, c) + " S" + static_cast<char>(c - 'a' + 'A') + " B AA\n";  // all differ, so none are grouped
  const auto task = make("data=cmudict,heldout=0,test=0.5,path=" + folder.write("d", lines));
  const auto batch = whole(*task, Split::test);
  std::size_t judged = 0;
  const auto numbered = [&](const std::string& sound) {
    for (int n = 1; n < task->dimensions().at("target_vocabulary"); ++n)
      if (task->word("target", n) == sound) return n;
    return -1;
  };
  for (std::size_t b = 0; b < batch.id.size(); ++b) {
    const bool two = batch.id[b] == 0;
    const int B = numbered("B"), AA = numbered("AA");
    Observation said{shaped<int>({1, 4}, {B, B, AA, 3}), zeros<int>({1, 0})};
    auto metrics = task->metrics();
    task->score_decoded(task->batch(Split::test, {static_cast<int>(b)}), said, metrics);
    CHECK(value(metrics, "symbol_error_rate") == doctest::Approx(two ? 1.0 / 4 : 1.0 / 3));
    CHECK(value(metrics, "word_error_rate") == 1);
    CHECK(value(metrics, "exact_match_decoded") == 0);
    judged += B > 0;
  }
  CHECK(judged > 5);
}

TEST_CASE("words with the same sounds, and equal forms, are in one split") {
  Folder folder;
  std::string sounds, forms;
  for (int i = 0; i < 300; ++i) {
    const std::string stem(1 + static_cast<std::size_t>(i / 20), static_cast<char>('a' + i % 20));
    std::string sound;
    for (char letter : stem) sound += std::string(" ") + static_cast<char>(letter - 'a' + 'A');
    for (const auto* ending : {"e", "ee"}) sounds += stem + ending + sound + "\n";
    for (const auto* feature : {"NOM", "ACC"}) forms += stem + "\t" + stem + "s\tN;" + feature + "\n";
  }
  for (const auto& kind : {"cmudict,path=" + folder.write("d", sounds), "inflection,path=" + folder.write("f", forms)}) {
    const auto task = make("heldout=0.2,test=0.2,data=" + kind);
    std::map<std::uint32_t, Split> of;
    for (auto split : {Split::train, Split::heldout, Split::test}) {
      CHECK(task->size(split) > 40);
      for (auto id : whole(*task, split).id) CHECK(of.try_emplace(id / 2, split).first->second == split);
    }
    CHECK(has(task->provenance(), " 0 of the 2"));
  }
}

TEST_CASE("inflections: features are part of the source") {
  Folder folder;
  const auto task = make("data=inflection,heldout=0,test=0,path=" + folder.write("f", "go\twent\tV;PST\n"));
  const auto batch = whole(*task, Split::train);
  CHECK(text(*task, batch, "source", 0) == "g o <V> <PST> ");
  CHECK(text(*task, batch, "target", 0) == "w e n t <eos> ");
  const auto sounds = make("data=pronunciation,heldout=0,test=0,path=" + folder.write("w", "go\tg ow\n"));
  CHECK(text(*sounds, whole(*sounds, Split::train), "target", 0) == "g ow <eos> ");
}

TEST_CASE("other data use the vocabulary of training, other words are unknown") {
  Folder folder;
  const auto trained = make("data=pronunciation,heldout=0,test=0,path=" + folder.write("w", "abc\tx y z\n"));
  const auto other = make("data=pronunciation,heldout=0,test=0,path=" + folder.write("v", "dcb\tz w\n"), trained.get());
  CHECK(other->dimensions().at("source_vocabulary") == trained->dimensions().at("source_vocabulary"));
  const auto batch = whole(*other, Split::train);
  CHECK(text(*other, batch, "source", 0) == "<unk> c b ");
  CHECK(text(*other, batch, "target", 0) == "z <unk> <eos> ");
  for (int number : batch.ints("target")) CHECK(trained->word("target", number) == other->word("target", number));
}

TEST_CASE("bad settings are rejected") {
  Folder folder;
  const auto says = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  CHECK(has(says("data=cmudict"), "transduce: data=cmudict needs path=FILE"));
  CHECK(has(says("path=x"), "path is given, but data=generated"));
  CHECK(has(says("heldout=0.5,test=0.5"), "transduce: heldout and test together must be below 1"));
  CHECK(has(says("data=pronunciation,max_length=1,path=" + folder.write("w", "ab\tx\n")),
            "w: nothing left: 1 of 1 words are longer than max_length=1"));
}

}  // namespace hardgrad::testing::transduce_test
