// Pairs of sentences: the meaning of generated ones, files, splits, bad input.
#include <map>
#include <numeric>
#include <set>

#include "experiments/tasks/generated_pairs.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::pairs_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("pairs[" + arguments + "]"), Key(seed));
}

/// A sentence's meaning: [adjective, noun or kind] of subject and object, the verb, whether it is negated.
struct Meaning {
  std::array<std::string, 2> adjective, noun;
  std::string verb;
  bool denied = false;
  bool operator==(const Meaning&) const = default;
};
Meaning meant(const std::vector<std::string>& sentence) {
  Meaning m;
  int phrase = -1;
  bool passive = false;
  for (auto word : sentence) {
    if (word.back() == 's' && word != "is") word.pop_back();  // a synonym
    if (word == "the") ++phrase;
    if (word == "is") passive = true;
    if (word == "not") m.denied = true;
    if (word[0] == 'v') m.verb = word;
    if (word[0] == 'a' || word[0] == 'u') m.adjective[phrase] = word;
    if (word != "not" && (word[0] == 'n' || word[0] == 'k')) m.noun[phrase] = word;
  }
  if (passive) std::swap(m.adjective[0], m.adjective[1]), std::swap(m.noun[0], m.noun[1]);
  return m;
}

}  // namespace

TEST_CASE("generated paraphrases have the same meaning, and other pairs do not") {
  const PhrasePairs phrases{6, PhrasePairs::Kind::paraphrase};
  std::map<std::string, int> count;
  int synonyms = 0, passive = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const auto pair = phrases.generate(Key(4) / i);
    const auto first = meant(pair.first), second = meant(pair.second);
    CHECK((first == second) == (pair.label == "same"));
    CHECK(!first.noun[0].empty());
    CHECK(first.noun[0] != first.noun[1]);
    ++count[pair.label];
    for (const auto& word : pair.second) synonyms += word.back() == 's' && word != "is", passive += word == "is";
    CHECK(pair.first == phrases.generate(Key(4) / i).first);
  }
  CHECK(count.size() == 2);
  CHECK((count["same"] > 230 && count["other"] > 230));  // of 600, six standard deviations
  CHECK(synonyms > 600);
  CHECK((passive > 230 && passive < 370));
}

TEST_CASE("a generated pair of phrases is two nouns, with or without an adjective") {
  const PhrasePairs phrases{3, PhrasePairs::Kind::phrase};
  std::set<std::size_t> lengths;
  int same = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const auto pair = phrases.generate(Key(6) / i);
    lengths.insert(pair.first.size());
    CHECK(pair.first.size() == pair.second.size());
    bool equal = true;
    for (std::size_t w = 0; w < pair.first.size(); ++w) equal &= pair.second[w].substr(0, 2) == pair.first[w];
    CHECK(equal == (pair.label == "same"));
    same += equal;
  }
  CHECK(lengths == std::set<std::size_t>{1, 2});
  CHECK((same > 140 && same < 260));  // of 400, six standard deviations
}

TEST_CASE("pairs generated as entailed, neutral or contradiction are") {
  const PhrasePairs phrases{6, PhrasePairs::Kind::entailment};
  std::map<std::string, int> count;
  for (std::uint64_t i = 0; i < 900; ++i) {
    const auto pair = phrases.generate(Key(5) / i);
    const auto first = meant(pair.first), second = meant(pair.second);
    CHECK(first.verb == second.verb);
    bool more = false, opposite = false;
    for (int who = 0; who < 2; ++who) {
      if (second.noun[who][0] == 'k')
        CHECK(std::stoi(second.noun[who].substr(1)) == std::stoi(first.noun[who].substr(1)) % 3);
      else
        CHECK(second.noun[who] == first.noun[who]);
      const auto &was = first.adjective[who], &is = second.adjective[who];
      more |= was.empty() && !is.empty();
      opposite |= !is.empty() && !was.empty() && is != was;
      if (!is.empty() && !was.empty()) CHECK(is.substr(1) == was.substr(1));
    }
    CHECK(pair.label == (second.denied || opposite ? "contradicts" : more ? "neutral" : "entails"));
    CHECK_FALSE((more && (second.denied || opposite)));
    ++count[pair.label];
  }
  CHECK(count.size() == 3);
  for (const auto& [label, n] : count) CHECK((n > 215 && n < 385));
}

TEST_CASE("a batch has words, lengths and labels, splits are disjoint, and every id is one example") {
  const auto task = make("examples=400,words=3");
  const auto dimensions = task->dimensions();
  CHECK(dimensions.at("classes") == 2);
  CHECK(dimensions.at("first_length") == 7);
  CHECK(dimensions.at("second_length") == 9);
  std::set<std::uint32_t> ids;
  std::map<std::string, Split> split_of;
  std::size_t all = 0;
  for (auto split : {Split::train, Split::heldout, Split::test}) {
    CHECK(task->size(split) > 5);
    all += task->size(split);
    std::vector<int> every(task->size(split));
    std::iota(every.begin(), every.end(), 0);
    const auto batch = task->batch(split, every);
    for (std::size_t b = 0; b < every.size(); ++b) {
      CHECK(ids.insert(batch.id[b]).second);
      std::string text;
      for (const auto* side : {"first", "second"}) {
        const auto words = row_of(batch.ints(side), b);
        for (std::size_t i = 0; i < words.size(); ++i) {
          const bool there = i < static_cast<std::size_t>(batch.ints(std::string(side) + "_length")(b));
          CHECK((words[i] > 0) == there);
          CHECK(task->word(side, words[i]).empty() != there);
          text += task->word(side, words[i]) + " ";
        }
      }
      CHECK(split_of.emplace(text, split).first->second == split);
      const int label = batch.ints("label")(b);
      CHECK(task->word("label", label) == (label == 0 ? "other" : "same"));
    }
  }
  CHECK(all == 400);
  auto metrics = task->metrics();
  const auto batch = task->batch(Split::train, {0, 1});
  const auto& label = batch.ints("label").storage();
  task->score(batch, {shaped<int>({2, 2}, {1 - label[0], label[0], 1 - label[1], -1}), {}}, metrics);
  CHECK(metrics[0].value() == 0.5);
}

TEST_CASE("files: labels, tokens, excluded pairs") {
  Folder folder;
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += std::string(i % 3 ? "yes" : "no") + "\tA dog " + std::to_string(i) + " runs.\tIt's a dog!\r\n\n";
  text += "yes\t" + std::string(50, 'a') + " b c d e f g\tshort\n";
  folder.write_gz("pairs.tsv.gz", text);
  const auto task = make("max_length=6,path=" + folder / "pairs.tsv.gz");
  CHECK(task->size(Split::train) + task->size(Split::heldout) + task->size(Split::test) == 30);
  CHECK(has(task->provenance(), "1 left out: empty, or of more than 6 tokens"));
  CHECK(task->dimensions().at("first_length") == 5);
  const auto batch = task->batch(Split::train, {0});
  CHECK(task->word("first", batch.ints("first").flat(1)) == "dog");
  CHECK(task->word("second", batch.ints("second").flat(0)) == "it's");
  const auto label = task->word("label", batch.ints("label").flat(0));
  CHECK((label == "yes" || label == "no"));
  CHECK(task->word("label", 2).empty());
  CHECK(make("lower_case=false,limit=12,heldout=0,test=0,path=" + folder / "pairs.tsv.gz")->size(Split::train) == 12);
}

TEST_CASE("files: splits share no sentence, unless together=pair") {
  Folder folder;
  std::string text;
  for (int i = 0; i < 900; ++i)  // each first sentence has three pairs; a second sentence is the first one of other pairs
    text += std::string(i % 2 ? "yes" : "no") + "\tsaid " + std::to_string(i / 3) + "\tsaid " +
            std::to_string(i < 600 ? i + 300 : 0) + "\n";
  const auto path = ",path=" + folder.write("pairs", text);
  for (const auto& together : {"either", "first", "pair"}) {
    const auto task = make("heldout=0.2,test=0.2,together=" + std::string(together) + path);
    std::map<std::uint32_t, Split> first;
    bool parted = false;
    for (auto split : {Split::train, Split::heldout, Split::test}) {
      std::vector<int> every(task->size(split));
      std::iota(every.begin(), every.end(), 0);
      for (auto id : task->batch(split, every).id) parted |= first.try_emplace(id / 3, split).first->second != split;
    }
    CHECK(parted == (together == std::string("pair")));
    CHECK(has(task->provenance(), " 0 of the ") == (together == std::string("either")));
  }
}

TEST_CASE("bad settings and files of pairs are rejected") {
  Folder folder;
  const auto says = [&](const std::string& content, const std::string& more = "") {
    folder.write("p", content);
    return refusal(folder, [&] { make(more + "path=" + folder / "p"); });
  };
  CHECK(has(says("a\tb\tc\na\tb\n"), "p:2:4: fewer than three columns"));
  CHECK(has(says("a\tb\tc\na\tc\tb\n"), "all pairs have the label \"a\"; there is nothing to learn"));
  CHECK(has(says("a\tb c d\te\nb\tb c d\te f g\n", "max_length=2,"), "no pair is left to train on"));
  CHECK(has(refusal(folder, [&] { make("path=" + (folder / "none")); }), "none"));
  CHECK(has(refusal(folder, [&] { make("heldout=0.5,test=0.5"); }), "heldout and test together must be below 1"));
}

TEST_CASE("other pairs use the words, labels and lengths of training") {
  Folder folder;
  const auto trained =
      make("heldout=0,test=0,path=" + folder.write("a", "yes\ta dog runs\ta dog\nno\ta cat\tdog cat runs far\n"));
  const auto path = folder.write("b", "no\tdog bird\tcat\nno\ta dog runs far\tcat\nyes\ta\ta dog cat runs far\n");
  const auto other = make_task(Spec::parse("pairs[heldout=0,test=0,path=" + path + "]"), Key(2), trained.get());
  CHECK(other->dimensions() == trained->dimensions());
  REQUIRE(other->size(Split::train) == 1);  // the others have a sentence longer than any in training
  CHECK(has(other->provenance(), "2 left out: empty, or of more than 3 and 4 tokens"));
  const auto batch = other->batch(Split::train, {0});
  const auto &first = batch.ints("first").storage(), &second = batch.ints("second").storage();
  CHECK((trained->word("first", first[0]) == "dog" && first[1] == 1 && trained->word("second", second[0]) == "cat"));
  CHECK(trained->word("label", batch.ints("label").flat(0)) == "no");
  folder.write("b", "maybe\tdog\tcat\n");
  CHECK(refusal(folder, [&] { make_task(Spec::parse("pairs[heldout=0,test=0,path=" + path + "]"), Key(2), trained.get()); }) ==
        "b: \"maybe\" is a label that the network cannot give: it was trained on other pairs");
}

}  // namespace hardgrad::testing::pairs_test
