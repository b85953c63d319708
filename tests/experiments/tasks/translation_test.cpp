// Translation: fields, gold alignment, splits, metrics, and corpora of every kind.
#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "experiments/tasks/generated_pairs.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/tasks/text.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::translation_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("translation[" + arguments + "]"), Key(seed));
}
Batch whole(const Task& task, Split split) {
  std::vector<int> all(task.size(split));
  std::iota(all.begin(), all.end(), 0);
  return task.batch(split, all);
}
// The source word of a target word: N4 and M4 translate n4.
std::string source_of(std::string word) {
  word[0] = static_cast<char>(word[0] == 'M' ? 'n' : std::tolower(word[0]));
  return word;
}
constexpr Split splits[] = {Split::train, Split::heldout, Split::test};

}  // namespace

TEST_CASE("generated sentences: the gold alignment is that of the translation") {
  std::set<std::size_t> lengths;
  bool reordered = false, fertile = false, barren = false;
  const SentenceGrammar grammar{.words = 8, .min_length = 2, .max_length = 7};
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto pair = grammar.generate(Key(3) / i);
    lengths.insert(pair.source.size());
    CHECK(pair.target.size() <= 7);
    REQUIRE(pair.alignment.size() == pair.target.size());
    std::vector<int> used(pair.source.size());
    for (std::size_t t = 0; t < pair.target.size(); ++t) {
      const int s = pair.alignment[t];
      REQUIRE(s >= 0);
      REQUIRE(s < static_cast<int>(pair.source.size()));
      ++used[s];
      CHECK(source_of(pair.target[t]) == pair.source[s]);
      reordered = reordered || (t > 0 && s < pair.alignment[t - 1]);
    }
    for (std::size_t s = 0; s < used.size(); ++s) {
      const bool the = pair.source[s] == "the";
      CHECK(used[s] == (the ? 0 : pair.source[s] == "n4" ? 2 : 1));
      barren = barren || the;
      fertile = fertile || used[s] == 2;
    }
    CHECK(grammar.generate(Key(3) / i).source == pair.source);
  }
  CHECK(lengths == std::set<std::size_t>{2, 3, 4, 5, 6, 7});
  CHECK(reordered);
  CHECK(fertile);
  CHECK(barren);
}

TEST_CASE("a batch is padded, ends with the end mark, and is reproducible by key") {
  const auto task = make("examples=300,max_length=6");
  const auto dims = task->dimensions();
  CHECK(dims.at("bos") == 2);
  CHECK(dims.at("eos") == 3);
  CHECK(dims.at("source_length") == 6);
  CHECK(dims.at("target_length") <= 7);
  CHECK(dims.at("source_vocabulary") == 4 + 3 * 8 + 1);
  const auto batch = whole(*task, Split::train);
  const auto &source = batch.ints("source"), &target = batch.ints("target"), &alignment = batch.ints("alignment");
  for (std::size_t b = 0; b < batch.id.size(); ++b) {
    const int S = batch.ints("source_length")(b), T = batch.ints("target_length")(b);
    CHECK(S >= 1);
    for (int l = 0; l < static_cast<int>(source.shape()[1]); ++l) CHECK((row_of(source, b)[l] > 3) == (l < S));
    for (int t = 0; t < static_cast<int>(target.shape()[1]); ++t) {
      CHECK((row_of(target, b)[t] != 0) == (t < T));
      CHECK((row_of(target, b)[t] == 3) == (t == T - 1));
      CHECK((row_of(alignment, b)[t] >= 0) == (t < T - 1));
      CHECK(row_of(alignment, b)[t] < S);
      if (t < T - 1) {
        const auto at = static_cast<std::size_t>(row_of(alignment, b)[t]);
        CHECK(source_of(task->word("target", row_of(target, b)[t])) == task->word("source", row_of(source, b)[at]));
      }
    }
    CHECK(task->word("target", row_of(target, b)[T - 1]) == "<eos>");
  }
  CHECK(task->word("source", 0).empty());
  CHECK(task->word("alignment", 3).empty());
  CHECK(whole(*make("examples=300,max_length=6"), Split::train).ints("target").storage() == target.storage());
  CHECK(whole(*make("examples=300,max_length=6", 2), Split::train).ints("target").storage() != target.storage());
}

TEST_CASE("splits share no source sentence and no id") {
  const auto task = make("examples=2000,max_length=4,words=4,heldout=0.2,test=0.2");
  std::map<std::vector<int>, Split> sources;
  std::set<std::uint32_t> ids;
  for (auto split : splits) {
    const auto batch = whole(*task, split);
    CHECK(batch.id.size() > 100);
    const auto width = batch.ints("source").shape()[1];
    for (std::size_t b = 0; b < batch.id.size(); ++b) {
      CHECK(ids.insert(batch.id[b]).second);
      auto row = row_of(batch.ints("source"), b);
      std::vector<int> source(row.begin(), row.end());
      source.resize(std::max<std::size_t>(width, 10));
      CHECK(sources.try_emplace(source, split).first->second == split);
    }
  }
  CHECK(ids.size() == 2000);
}

TEST_CASE("pairs of a file share no sentence of either side over splits") {
  Folder folder;
  std::string text;
  // Sources 0 to 299 have two translations; every second of these also translates another source.
  const auto sides = [](int i) {
    return std::array{"target " + std::to_string(i < 600 ? i : i - 600 + i % 2),
                      "source " + std::to_string(i < 600 ? i % 300 : i)};
  };
  for (int i = 0; i < 900; ++i) text += sides(i)[0] + "\t" + sides(i)[1] + "\n";
  const auto task = make("data=tatoeba,heldout=0.2,test=0.2,path=" + folder.write("pairs", text));
  std::map<std::string, Split> seen;
  for (auto split : splits) {
    const auto batch = whole(*task, split);
    CHECK(batch.id.size() > 60);
    for (auto id : batch.id)
      for (const auto& side : sides(static_cast<int>(id))) CHECK(seen.try_emplace(side, split).first->second == split);
  }
  CHECK(has(task->provenance(), " 0 of the "));
  CHECK(has(task->provenance(), "share a side with training"));
  CHECK_FALSE(has(make("examples=2000,max_length=4,words=4")->provenance(), " 0 of the "));  // grouped by source alone
}

TEST_CASE("a tab file: direction, case, cut-off, lengths, limit") {
  Folder folder;
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "One word " + std::string(static_cast<std::size_t>(i % 3), 'x') + ".\tEin Wort " + std::to_string(i) + "!\n";
  text += "far too long a sentence for this\tzu lang\n";
  const auto path = folder.write_gz("deu.txt.gz", text);
  const auto german = make("data=tatoeba,max_length=5,heldout=0,test=0,path=" + path);
  CHECK(german->size(Split::train) == 60);
  CHECK(has(german->provenance(), "61 pairs read"));
  CHECK(has(german->provenance(), "1 by length"));
  CHECK(german->dimensions().at("source_vocabulary") == 4 + 3 + 60);
  const auto english = make("data=tatoeba,max_length=5,heldout=0,test=0,source_column=1,path=" + path);
  CHECK(english->dimensions().at("source_vocabulary") == 4 + 3 + 2);
  const auto cut = make("data=tatoeba,max_length=5,vocabulary=6,path=" + path);
  CHECK(cut->dimensions().at("source_vocabulary") == 6);
  const auto limited = make("data=tatoeba,max_length=5,limit=20,path=" + path);
  CHECK(limited->size(Split::train) + limited->size(Split::heldout) + limited->size(Split::test) == 20);
  CHECK(limited->size(Split::heldout) > 0);
  CHECK_FALSE(whole(*limited, Split::train).integers.contains("alignment"));
}

TEST_CASE("parallel texts, with links or without") {
  Folder folder;
  const auto one = folder.write("one", "Ein Hund .\nEine Katze .\n"), two = folder.write("two", "A dog .\nA cat .\n");
  CHECK(make("data=text,heldout=0,test=0,path=" + one + ",target_path=" + two)->size(Split::train) == 2);
  // Gold links refer to words between blanks ("dog," is one word). Excluded lines have links, too.
  const auto source = folder.write("s",
                                   "ein Hund, ja\n\nzwei Hunde da drau\xc3\x9f"
                                   "en\nja\n");
  const auto target = folder.write("t", "a dog, yes\nx\ntwo dogs\nyes\n");
  const auto links = folder.write("l", "0-0 1-1 2?2\n\n0-0 1-1 1-0\n\n");
  const auto task = make("data=text,heldout=0,test=0,path=" + source + ",target_path=" + target + ",links=" + links);
  CHECK(has(task->provenance(), "1 with an empty side"));
  const auto batch = whole(*task, Split::train);
  REQUIRE(batch.id.size() == 3);
  auto metrics = task->metrics();
  for (std::size_t b = 0; b < 3; ++b) {
    const int words = batch.ints("source_length")(b);
    const std::vector<int> wanted = words == 3   ? std::vector{0, 1, -1, -1}
                                    : words == 4 ? std::vector{0, 1, -1, -1}
                                                 : std::vector(4, -1);
    const auto row = row_of(batch.ints("alignment"), b);
    CHECK(std::vector<int>(row.begin(), row.end()) == wanted);
    // Attends to words 0, 1, 2. A position beyond a shorter sentence is not a link (a null position).
    const auto one = task->batch(Split::train, {static_cast<int>(b)});
    const auto T = one.ints("target").shape()[1];
    Array<int> looked = zeros<int>({1, T});
    std::iota(looked.begin(), looked.end(), 0);
    task->score(one, {one.ints("target"), looked}, metrics);
  }
  // A = {00, 11, 22} against S = {00, 11}, P = {22}: 1 - (2 + 3) / 5; {00, 11} against S = {00, 11, 10}: 1 - (2 + 2) / (2 + 3).
  for (const auto& metric : metrics)
    if (metric.name == "alignment_error_rate") {
      CHECK(metric.numerator == 0 + 1);
      CHECK(metric.denominator == 5 + 5);
    }
  const auto refused = [&](const std::string& gold) {
    const auto path = folder.write("l", gold);
    return refusal(folder,
                   [&] { make("data=text,heldout=0,test=0,path=" + source + ",target_path=" + target + ",links=" + path); });
  };
  CHECK(has(refused("\n0-0\n\n\n"), "l:2:1: a link of source word 0 and target word 0, but the pair has 0 and 1"));
  CHECK(has(refusal(folder, [&] { make("links=" + links); }), "links is for data=text only"));
}

TEST_CASE("development and test files of their own are used whole and take no share of training") {
  Folder folder;
  std::string lines, sources, targets;
  for (int i = 0; i < 40; ++i) {
    sources += fmt::format("s{}\n", i);
    targets += fmt::format("t{}\n", i);
    lines += fmt::format("t{0}\ts{0}\n", i);
  }
  const auto tab = folder.write("train", lines), dev = folder.write("dev", "a b c d e\tf\nt3\tnew\n"),
             test = folder.write("test", "x\ty\n");
  const auto task = make("data=tatoeba,max_length=3,path=" + tab + ",dev_path=" + dev + ",test_path=" + test);
  CHECK(task->size(Split::train) == 40);
  const auto ids = whole(*task, Split::heldout).id;
  CHECK(std::set<std::uint32_t>(ids.begin(), ids.end()) == std::set<std::uint32_t>{40, 41});
  CHECK(task->size(Split::test) == 1);
  CHECK(task->dimensions().at("target_length") == 5 + 1);       // longer than max_length
  CHECK(task->dimensions().at("target_vocabulary") == 4 + 40);  // words of the training file alone
  CHECK(has(task->provenance(), "train, dev: "));
  CHECK(has(task->provenance(), "43 pairs read"));
  CHECK(has(task->provenance(), "1 of the 3 held out or to test share a side with training"));
  const auto one = make("data=tatoeba,test=0.2,path=" + tab + ",dev_path=" + dev);  // the test split is still a share
  CHECK(one->size(Split::heldout) == 2);
  CHECK(one->size(Split::train) + one->size(Split::test) == 40);
  CHECK(one->size(Split::test) > 2);

  const auto text = "data=text,path=" + folder.write("s", sources) + ",target_path=" + folder.write("t", targets);
  const auto parallel =
      make(text + ",test_path=" + folder.write("ts", "q\n\n") + ",test_target_path=" + folder.write("tt", "r\nz\n"));
  CHECK(parallel->size(Split::test) == 1);
  CHECK(has(parallel->provenance(), "1 with an empty side"));
  const auto says = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  CHECK(has(says(text + ",dev_path=" + dev),
            "data=text needs dev_path=FILE (source) and dev_target_path=FILE (its translation)"));
  CHECK(has(says(text + ",dev_target_path=" + dev), "data=text needs dev_path=FILE"));
  CHECK(has(says("test_path=" + test), "test_path is given, but data=generated"));
  CHECK(has(says("data=tatoeba,path=" + tab + ",test_target_path=" + test), "test_target_path is for data=text only"));
}

TEST_CASE("bad settings and corpora are rejected") {
  Folder folder;
  const auto says = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  const auto file = folder.write("pairs", "a b c d e f\tx y z\n");
  CHECK(has(says("data=tatoeba"), "translation: data=tatoeba needs path=FILE"));
  CHECK(has(says("data=text,path=" + file), "target_path=FILE"));
  CHECK(has(says("path=" + file), "data=generated"));
  CHECK(has(says("data=tatoeba,path=" + file + ",target_path=" + file), "target_path is for data=text only"));
  CHECK(has(says("min_length=5,max_length=3"), "min_length must be at most max_length=3, got 5"));
  CHECK(has(says("heldout=0.5,test=0.5"), "together must be below 1"));
  CHECK(has(says("data=tatoeba,max_length=4,path=" + file), "pairs: nothing left: of 1 pairs, 1 are shorter than"));
  CHECK(has(says("data=tatoeba,path=" + (folder / "none")), "none: there is no such file"));
}

TEST_CASE("metrics of teacher forcing and of decoding") {
  const auto task = make("examples=50,max_length=4");
  const auto batch = task->batch(Split::train, {0, 1, 2});
  const auto &target = batch.ints("target"), &length = batch.ints("target_length");
  const auto value = [](const std::vector<Metric>& metrics, const std::string& name) {
    for (const auto& metric : metrics)
      if (metric.name == name) return metric.value();
    return -1.0;
  };
  const double words = length.flat(0) + length.flat(1) + length.flat(2);

  Observation right{target, batch.ints("alignment")};
  auto metrics = task->metrics();
  task->score(batch, right, metrics);
  CHECK(value(metrics, "token_accuracy") == 1);
  CHECK(value(metrics, "exact_match") == 1);
  CHECK(value(metrics, "alignment_error_rate") == 0);
  CHECK(std::isnan(value(metrics, "bleu")));

  auto wrong = right;
  row_of(wrong.predictions, 1)[0] += 1;
  REQUIRE(batch.ints("source_length").flat(1) > 1);
  row_of(wrong.choices, 1)[0] = row_of(wrong.choices, 1)[0] == 0;
  metrics = task->metrics();
  task->score(batch, wrong, metrics);
  CHECK(value(metrics, "token_accuracy") == doctest::Approx(1 - 1 / words));
  CHECK(value(metrics, "exact_match") == doctest::Approx(2.0 / 3));
  CHECK(value(metrics, "alignment_error_rate") == doctest::Approx(1 / (words - 3)));

  REQUIRE(task->decodes());
  metrics = task->metrics();
  task->score_decoded(batch, right, metrics);
  CHECK(value(metrics, "exact_match_decoded") == 1);
  auto babble = right;  // words after the end mark do not count, words before it do
  for (std::size_t b = 0; b < 3; ++b)
    for (std::size_t t = length(b); t < target.shape()[1]; ++t) row_of(babble.predictions, b)[t] = 5;
  metrics = task->metrics();
  task->score_decoded(batch, babble, metrics);
  CHECK(value(metrics, "exact_match_decoded") == 1);
  task->score_decoded(batch, wrong, metrics);
  CHECK(value(metrics, "exact_match_decoded") == doctest::Approx(5.0 / 6));
}

TEST_CASE("letters: the same sentences, a blank between words, and BLEU of the spelled words") {
  Folder folder;
  const auto path = folder.write("pairs", "Ab c\tZwei \xc3\x9c!\nab de f\tx y\n");
  const std::string data = "data=tatoeba,heldout=0,test=0,source_column=1,max_length=4,path=" + path;
  const auto task = make(data + ",symbols=letters"), words = make(data);
  CHECK(task->size(Split::train) == 2);
  const auto batch = whole(*task, Split::train);
  const std::size_t b = batch.ints("source_length").flat(0) == 4 ? 0 : 1;
  std::string source, target;
  for (int word : row_of(batch.ints("source"), b)) source += task->word("source", word);
  for (int word : row_of(batch.ints("target"), b)) target += task->word("target", word);
  CHECK(source == "ab\u2423c");
  CHECK(has(target, "zwei\u2423\u00fc\u2423!"));
  CHECK_FALSE(batch.integers.contains("alignment"));
  CHECK(has(task->provenance(), "target letters unknown"));
  CHECK(has(words->provenance(), "target words unknown"));
  // The correct answer has BLEU 1. One wrong letter has the BLEU of one wrong word.
  const auto generated = make("examples=40,min_length=6,max_length=8,symbols=letters,heldout=0,test=0"),
             by_word = make("examples=40,min_length=6,max_length=8,heldout=0,test=0");
  const auto bleu_of = [](const Task& task, bool wrong) {
    const auto batch = whole(task, Split::train);
    auto answer = batch.ints("target");
    for (std::size_t b = 0; wrong && b < batch.id.size(); ++b) row_of(answer, b)[0] = Vocabulary::unknown;
    auto metrics = task.metrics();
    task.score_decoded(batch, {answer, full<int>(answer.shape(), -1)}, metrics);
    return value(metrics, "bleu");
  };
  CHECK(bleu_of(*generated, false) == 1);
  CHECK(bleu_of(*generated, true) < 1);
  CHECK(bleu_of(*generated, true) == doctest::Approx(bleu_of(*by_word, true)).epsilon(1e-12));
  CHECK_THROWS_WITH_AS(make_task(Spec::parse("translation"), Key(1), task.get()),
                       "translation: the network was trained on letters; symbols=letters", UsageError);
  CHECK(
      has(refusal(folder, [&] { make("data=text,symbols=letters,links=" + path + ",path=" + path + ",target_path=" + path); }),
          "links are between words; they do not go with symbols=letters"));
}

TEST_CASE("positions used: only one, or all") {
  Folder folder;
  const auto source = folder.write("s", "a b c\na b c\na\n"), target = folder.write("t", "x y z u\nx y\nx y z\n");
  const auto task = make("data=text,heldout=0,test=0,path=" + source + ",target_path=" + target);
  const auto batch = whole(*task, Split::train);
  const auto used = [&](auto position) {
    Observation seen{batch.ints("target"), full<int>(batch.ints("target").shape(), -1)};
    for (std::size_t b = 0; b < 3; ++b)
      for (int t = 0; t < batch.ints("target_length")(b); ++t) row_of(seen.choices, b)[t] = position(t);
    auto metrics = task->metrics();
    task->score(batch, seen, metrics);
    for (const auto& metric : metrics)
      if (metric.name == "positions_used") return metric.value();
    return -1.0;
  };
  CHECK(used([](int) { return 2; }) == 0);
  CHECK(used([](int t) { return t < 3 ? t : 0; }) == 1);
  CHECK(used([](int t) { return t % 2; }) ==
        doctest::Approx(2.0 / 3));  // (1 + 1) of (2 + 1) further positions; the last sentence has one position
}

}  // namespace hardgrad::testing::translation_test
