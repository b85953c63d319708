// Question answering over short stories: generated, or bAbI files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/random/randomness.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/tasks/generated_stories.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/loaders/questions.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks::qa {
namespace {

/// The test file that belongs to a training file: `..._train.txt` and `..._test.txt`.
std::string test_file_of(const std::string& path) {
  const auto at = path.rfind("train");
  if (at != std::string::npos) {
    auto test_file = path;
    test_file.replace(at, 5, "test");
    if (path_kind(test_file) != PathKind::missing) return test_file;
    throw InputError(fmt::format("{}: there is no test file {}; give one with test_path=FILE", path, test_file));
  }
  throw InputError(fmt::format("{}: no test file can be guessed from this name; give one with test_path=FILE", path));
}

/// "qa3" of "/somewhere/qa3_three-supporting-facts_train.txt", for names of metrics.
std::string short_name(const std::string& path) {
  const auto name = std::filesystem::path(path).filename().string();
  return name.substr(0, name.find_first_of("_."));
}

/// The training files of a folder, in the order of their numbers.
std::vector<std::string> training_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (const auto name = entry.path().filename().string(); name.find("_train.txt") != std::string::npos)
      files.push_back(entry.path().string());
  if (files.empty()) throw InputError(folder + ": holds no file of the name ..._train.txt");
  std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
    const auto x = short_name(a), y = short_name(b);
    return std::pair(x.size(), x) < std::pair(y.size(), y);
  });
  return files;
}

enum class Facts { one, two };
constexpr Named<Facts> all_facts[] = {{"1", Facts::one}, {"2", Facts::two}};

struct Config {
  std::string path, test_path;
  std::size_t memory = 50;
  double time_noise = 0;
  SplitShares shares{.heldout = 0.1, .test = 0.1};
  Facts supporting_facts = Facts::one;
  int stories = 200, questions = 5, people = 4, places = 6;

  void declare(Fields& field) {
    field.file(path, "path", "a bAbI training file, or a folder of them, learned jointly; empty: generated stories");
    field.file(test_path, "test_path", "its test file; empty: the same name with test instead of train");
    field(memory, "memory", 1, 10000, "most sentences in memory, the last ones");
    field(time_noise, "time_noise", 0, 1, "probability of an empty sentence before each one, in training only").below();
    shares.declare(field, "share of the training stories held out for validation",
                   "share of the stories held out for the test (generated)");
    field(supporting_facts, "supporting_facts", all_facts, "1: where is Mary; 2: where is the football (generated)");
    field(stories, "stories", 1, 1e6, "stories to generate");
    field(questions, "questions", 1, 100, "questions per story (generated)");
    field(people, "people", 1, 8, "people in the stories (generated)");
    field(places, "places", 2, 8, "places in the stories (generated)");
  }
};

/// Fields: "story" [B, N, W] sentences, oldest first, and "story_length" [B]; "question" [B, W]; "answer" [B]; "support" [B, N]
/// 1 for supporting facts. W is the same in all batches. In the vocabulary, answers come first after <pad> and <unk>, in the
/// order of their classes.
///
/// Several files are learned jointly: they share words and answers, and the file of a question is not an input.
class QuestionAnswering final : public Listed {
 public:
  QuestionAnswering(const Config& config, Key key, const QuestionAnswering* like)
      : memory_(config.memory), time_noise_(config.time_noise) {
    if (like) memory_ = std::min(memory_, like->sentences_in_memory_);
    const auto path = find_input(config.path);
    const auto test_path = find_input(config.test_path);
    std::vector<BabiStories> all;
    std::vector<Split> splits;
    const auto take = [&](BabiStories stories, const std::vector<Split>& parts) {
      splits.insert(splits.end(), parts.begin(), parts.end());
      all.push_back(std::move(stories));
    };
    if (path.empty()) {
      if (!test_path.empty()) throw UsageError("qa: test_path is given without path; give the training file with path=FILE");
      require_shares("qa", config.shares);
      const StoryWorld world{config.stories, config.questions, config.supporting_facts == Facts::two ? 2 : 1, config.people,
                             config.places};
      auto stories = parse_babi(world.tell(key / "story"));
      const auto parts = split_by_group(groups_of(stories), config.shares.heldout, config.shares.test, key / "split");
      take(std::move(stories), parts);
    } else {
      const bool folder = path_kind(path) == PathKind::folder;
      if (folder && !test_path.empty())
        throw UsageError("qa: test_path is for one file; the test files of a folder are found by their names");
      for (const auto& file : folder ? training_files(path) : std::vector{path}) {
        if (folder) files_.push_back(short_name(file));
        auto train = parse_babi(read_text(file));
        const auto parts = split_by_group(groups_of(train), config.shares.heldout, 0, key / "split");
        take(std::move(train), parts);
        const auto test_file = test_path.empty() ? test_file_of(file) : test_path;
        auto test = parse_babi(read_text(test_file));
        const std::vector<Split> all_test(test.questions.size(), Split::test);
        take(std::move(test), all_test);
        provenance_ = folder ? path : fmt::format("{} and {}", path, test_file);
      }
    }
    if (like) {
      vocabulary_ = like->vocabulary_;
      answers_ = like->answers_;
    } else {
      number_words(all, splits);
    }
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < all.size(); ++i) {
      add(all[i], files_.empty() ? 0 : i / 2);
      for (const auto& question : all[i].questions)
        texts.push_back(fmt::format("{}\t{}\t{}", all[i].stories[question.story], question.end - question.first,
                                    fmt::join(question.words, " ")));
    }
    part(texts, splits, key / "order", "no story is left to train on; give more stories, or heldout=0");
    if (like) {
      sentences_in_memory_ = like->sentences_in_memory_;
    } else {
      for (const auto& question : questions_)
        sentences_in_memory_ = std::max(sentences_in_memory_, question.end - question.first);
      sentences_in_memory_ += static_cast<std::size_t>(std::ceil(time_noise_ * static_cast<double>(sentences_in_memory_)));
    }
    provenance_ += fmt::format(": {} questions to train, {} held out, {} to test; {} stories cut to the last {} sentences",
                               size(Split::train), size(Split::heldout), size(Split::test), cut_, memory_);
  }

  Dimensions dimensions() const override {
    return {{"vocabulary", vocabulary_.size()},
            {"answers", static_cast<int>(answers_.size())},
            {"answer_word", first_answer},
            {"sentences", static_cast<int>(sentences_in_memory_)},
            {"words", static_cast<int>(words_)}};
  }
  Batch batch(Split split, const std::vector<int>& indices) const override { return filled(ids(split, indices), {}); }
  /// Adds random time noise (Sukhbaatar et al. 2015, sec. 4.1): empty sentences between the others, drawn in every epoch.
  Batch training_batch(const std::vector<int>& indices, Key epoch) const override {
    auto id = ids(Split::train, indices);
    std::vector<std::vector<bool>> empty;
    for (auto i : id) {
      KeyedRandomness random(epoch / std::uint64_t{i});
      const auto sentences = questions_[i].end - questions_[i].first;
      auto room = sentences_in_memory_ - sentences;
      auto& before = empty.emplace_back(sentences);  // true: preceded by an empty sentence
      for (std::uint32_t s = 0; s < sentences && time_noise_ > 0; ++s)
        if (room > 0 && random.uniform({.step = s}) < time_noise_) {
          before[s] = true;
          --room;
        }
    }
    return filled(std::move(id), empty);
  }

  std::string word(const std::string& field, int number) const override {
    if (field == "answer") return *std::next(answers_.begin(), number);
    if (number == Vocabulary::pad || (field != "story" && field != "question")) return {};
    return vocabulary_.word(number);
  }

  std::vector<Metric> metrics() const override {
    std::vector<Metric> all = {{.name = "accuracy", .unit = "1", .share = true}, {.name = "supporting_fact_hit", .unit = "1"}};
    for (const auto& file : files_) all.push_back({.name = "accuracy_" + file, .unit = "1", .share = true});
    return all;
  }
  /// supporting_fact_hit: at least one choice is a supporting fact; questions without known support in memory are left out.
  /// With several files, each also has an accuracy.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &answer = batch.ints("answer"), &support = batch.ints("support");
    for (std::size_t b = 0; b < answer.size(); ++b) {
      const auto predicted = row_of(seen.predictions, b);
      const bool right = !predicted.empty() && predicted.front() == answer(b);
      metrics[0].add(right);
      if (!files_.empty()) metrics[2 + questions_[batch.id[b]].file].add(right);
      const auto facts = row_of(support, b);
      const auto chosen = row_of(seen.choices, b);
      const auto known = [](int choice) { return choice >= 0; };
      if (std::count(facts.begin(), facts.end(), 1) == 0 || std::none_of(chosen.begin(), chosen.end(), known)) continue;
      metrics[1].add(std::any_of(chosen.begin(), chosen.end(), [&](int choice) {
        return choice >= 0 && static_cast<std::size_t>(choice) < facts.size() && facts[static_cast<std::size_t>(choice)] == 1;
      }));
    }
  }

 private:
  struct Question {
    std::size_t first, end;  // range of the sentences in memory
    std::vector<int> words;
    std::vector<std::size_t> support;
    int answer;
    std::size_t file;  // index of the file in a folder
  };

  /// `empty`: for each example, whether each of its sentences is preceded by an empty one. Empty: no sentence is.
  Batch filled(std::vector<std::uint32_t> id, const std::vector<std::vector<bool>>& empty) const {
    Batch batch;
    batch.id = std::move(id);
    const auto B = batch.id.size();
    std::vector<std::vector<std::size_t>> place(B);  // of each sentence
    Array<int> length = zeros<int>({B});
    std::size_t N = 0;
    for (std::size_t b = 0; b < B; ++b) {
      const auto& asked = questions_[batch.id[b]];
      std::size_t next = 0;
      for (std::size_t s = 0; s < asked.end - asked.first; ++s) {
        next += !empty.empty() && empty[b][s];
        place[b].push_back(next++);
      }
      length(b) = static_cast<int>(next);
      N = std::max(N, next);
    }
    Array<int> story = zeros<int>({B, N, words_}), question = zeros<int>({B, words_}), answer = zeros<int>({B}),
               support = zeros<int>({B, N});
    for (std::size_t b = 0; b < B; ++b) {
      const auto& asked = questions_[batch.id[b]];
      for (auto s = asked.first; s < asked.end; ++s)
        std::copy(sentences_[s].begin(), sentences_[s].end(),
                  row_of(story, b).begin() + static_cast<std::ptrdiff_t>(place[b][s - asked.first] * words_));
      std::copy(asked.words.begin(), asked.words.end(), row_of(question, b).begin());
      for (auto s : asked.support) support(b, place[b][s - asked.first]) = 1;
      answer(b) = asked.answer;
    }
    batch.integers = {{"story", std::move(story)},
                      {"story_length", std::move(length)},
                      {"question", std::move(question)},
                      {"answer", std::move(answer)},
                      {"support", std::move(support)}};
    return batch;
  }

  static std::vector<std::string> groups_of(const BabiStories& stories) {
    std::vector<std::string> groups;
    for (const auto& question : stories.questions) groups.push_back(stories.stories[question.story]);
    return groups;
  }

  // Words are those of the training split. Answers are those of all files; one that is not in the training split is always
  // wrong.
  void number_words(const std::vector<BabiStories>& all, const std::vector<Split>& splits) {
    auto split = splits.begin();
    for (const auto& stories : all) {
      std::set<std::size_t> counted;  // sentences
      for (const auto& question : stories.questions) {
        answers_.insert(question.answer);
        if (*split++ != Split::train) continue;
        vocabulary_.count(question.words);
        for (auto s = question.first; s < question.end; ++s)
          if (counted.insert(s).second) vocabulary_.count(stories.sentences[s]);
      }
    }
    vocabulary_.begin_with({answers_.begin(), answers_.end()});
    vocabulary_.close(first_answer);
  }

  std::vector<int> indices(const std::vector<std::string>& words) {
    words_ = std::max(words_, words.size());
    return vocabulary_.indices(words);
  }

  void add(const BabiStories& stories, std::size_t file) {
    const auto offset = sentences_.size();
    for (const auto& sentence : stories.sentences) sentences_.push_back(indices(sentence));
    for (const auto& question : stories.questions) {
      const auto cut = std::max(question.first + memory_, question.end) - memory_;  // the last `memory_` sentences
      cut_ += cut > question.first;
      Question kept{cut + offset, question.end + offset, indices(question.words), {}, 0, file};
      for (auto s : question.support)
        if (s >= cut) kept.support.push_back(s + offset);
      const auto answer = answers_.find(question.answer);
      if (answer == answers_.end())
        throw InputError(fmt::format("{}: \"{}\" is an answer that the network cannot give: it was trained on other files",
                                     provenance_, question.answer));
      kept.answer = static_cast<int>(std::distance(answers_.begin(), answer));
      questions_.push_back(std::move(kept));
    }
  }

  static constexpr int first_answer = 2;  // after <pad> and <unk>
  std::size_t memory_;
  double time_noise_;
  std::size_t words_ = 0, sentences_in_memory_ = 0, cut_ = 0;
  Vocabulary vocabulary_;
  std::set<std::string> answers_;  // an answer's class is its index
  std::vector<std::vector<int>> sentences_;
  std::vector<Question> questions_;
  std::vector<std::string> files_;  // short names of a folder's files
};

const TaskEntry entry = {
    .name = "qa",
    .summary = "questions about short stories, with attention to sentences",
    .data = "generated, or bAbI files, one task's or all of them (plain or .gz)",
    .default_model = "memory_reader",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(QuestionAnswering, entry)

}  // namespace
}  // namespace hardgrad::tasks::qa
