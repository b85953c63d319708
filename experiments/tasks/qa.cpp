// Question answering over short stories: generated, or bAbI files.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "experiments/support/place.hpp"
#include "experiments/tasks/loaders/babi.hpp"
#include "experiments/tasks/splits.hpp"
#include "experiments/tasks/story_world.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/tasks/vocabulary.hpp"

namespace hardgrad {
namespace {

/// The test file that belongs to a training file: `..._train.txt` and `..._test.txt`.
std::string twin_of(const std::string& path) {
  const auto at = path.rfind("train");
  if (at != std::string::npos) {
    auto twin = path;
    twin.replace(at, 5, "test");
    if (place_of(twin) != Place::nothing) return twin;
    throw InputError(fmt::format("{}: there is no test file {}; name one with test_path=FILE", path, twin));
  }
  throw InputError(fmt::format("{}: no test file can be guessed from this name; name one with test_path=FILE", path));
}

/// Fields: "story" [B, N, W] sentences, oldest first, and "story_length" [B]; "question" [B, W]; "answer"
/// [B]; "support" [B, N] 1 where a sentence is a supporting fact. W is the same in all batches.
class QuestionAnswering final : public Task {
 public:
  QuestionAnswering(const Settings& settings, Key key) : memory_(static_cast<std::size_t>(settings.integer("memory"))) {
    const auto path = find_input(settings.text("path"));
    const auto test_path = find_input(settings.text("test_path"));
    std::vector<Split> splits;
    if (path.empty()) {
      if (!test_path.empty()) throw UsageError("qa: test_path is given without path; name the training file, too");
      if (settings.real("heldout") + settings.real("test") >= 1)
        throw UsageError("qa: heldout and test together must be below 1");
      const StoryWorld world{settings.integer("stories"), settings.integer("questions"),
                             std::stoi(settings.text("supporting_facts")), settings.integer("people"),
                             settings.integer("places")};
      const auto stories = parse_babi(world.tell(key / "story"));
      splits = split_by_group(groups_of(stories), settings.real("heldout"), settings.real("test"), key / "split");
      count_and_add(stories, splits);
      provenance_ = "generated";
    } else {
      const auto train = parse_babi(read_text(path));
      const auto test_file = test_path.empty() ? twin_of(path) : test_path;
      const auto test = parse_babi(read_text(test_file));
      splits = split_by_group(groups_of(train), settings.real("heldout"), 0, key / "split");
      for (const auto& question : test.questions) answers_.insert(question.answer);
      count_and_add(train, splits);
      const std::vector<Split> all_test(test.questions.size(), Split::test);
      add(test);
      splits.insert(splits.end(), all_test.begin(), all_test.end());
      provenance_ = path + " and " + test_file;
    }
    splits_ = members(splits, key / "order");
    if (splits_[0].empty())
      throw InputError(fmt::format("{}: no story is left to train on; give more stories, or heldout=0", provenance_));
    for (std::size_t i = 0; i < questions_.size(); ++i)
      sentences_in_memory_ = std::max(sentences_in_memory_, questions_[i].end - questions_[i].first);
    provenance_ += fmt::format(": {} questions to train, {} held out, {} to test; {} stories cut to the last {} sentences",
                               splits_[0].size(), splits_[1].size(), splits_[2].size(), cut_, memory_);
  }

  Dimensions dimensions() const override {
    return {{"vocabulary", vocabulary_.size()},
            {"answers", static_cast<int>(answers_.size())},
            {"sentences", static_cast<int>(sentences_in_memory_)},
            {"words", static_cast<int>(words_)}};
  }
  std::size_t size(Split split) const override { return splits_[static_cast<std::size_t>(split)].size(); }
  std::string provenance() const override { return provenance_; }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    const auto& all = splits_[static_cast<std::size_t>(split)];
    Batch batch;
    std::size_t N = 0;
    for (int i : indices) {
      const int id = all.at(static_cast<std::size_t>(i));
      batch.id.push_back(static_cast<std::uint32_t>(id));
      N = std::max(N, questions_[id].end - questions_[id].first);
    }
    const auto B = indices.size();
    Array<int> story({B, N, words_}), length({B}), question({B, words_}), answer({B}), support({B, N});
    for (std::size_t b = 0; b < B; ++b) {
      const auto& asked = questions_[batch.id[b]];
      for (auto s = asked.first; s < asked.end; ++s)
        std::copy(sentences_[s].begin(), sentences_[s].end(), story.row(b).begin() + (s - asked.first) * words_);
      std::copy(asked.words.begin(), asked.words.end(), question.row(b).begin());
      for (auto s : asked.support) support.row(b)[s - asked.first] = 1;
      length.data[b] = static_cast<int>(asked.end - asked.first);
      answer.data[b] = asked.answer;
    }
    batch.integers = {{"story", std::move(story)},
                      {"story_length", std::move(length)},
                      {"question", std::move(question)},
                      {"answer", std::move(answer)},
                      {"support", std::move(support)}};
    return batch;
  }

  std::string word(const std::string& field, int number) const override {
    if (field == "answer") return *std::next(answers_.begin(), number);
    if (number == Vocabulary::pad || (field != "story" && field != "question")) return {};
    return vocabulary_.word(number);
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "accuracy", .unit = "1"}, {.name = "supporting_fact_hit", .unit = "1"}};
  }
  /// A hit: at least one of the choices is a supporting fact. Questions whose support is unknown or was cut
  /// are left out.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &answer = batch.ints("answer"), &support = batch.ints("support");
    for (std::size_t b = 0; b < answer.size(); ++b) {
      const auto predicted = seen.predictions.row(b);
      metrics[0].numerator += !predicted.empty() && predicted.front() == answer.data[b];
      metrics[0].denominator += 1;
      const auto facts = support.row(b);
      const auto chosen = seen.choices.row(b);
      const auto known = [](int choice) { return choice >= 0; };
      if (std::count(facts.begin(), facts.end(), 1) == 0 || std::none_of(chosen.begin(), chosen.end(), known)) continue;
      metrics[1].numerator += std::any_of(chosen.begin(), chosen.end(), [&](int choice) {
        return choice >= 0 && static_cast<std::size_t>(choice) < facts.size() && facts[static_cast<std::size_t>(choice)] == 1;
      });
      metrics[1].denominator += 1;
    }
  }

 private:
  struct Question {
    std::size_t first, end;  // sentences in memory
    std::vector<int> words;
    std::vector<std::size_t> support;
    int answer;
  };

  static std::vector<std::string> groups_of(const BabiStories& stories) {
    std::vector<std::string> groups;
    for (const auto& question : stories.questions) groups.push_back(stories.stories[question.story]);
    return groups;
  }

  // Words are those of the training split, answers those of all files: an answer never trained on is simply
  // missed.
  void count_and_add(const BabiStories& stories, const std::vector<Split>& splits) {
    std::set<std::size_t> counted;  // stories
    for (std::size_t i = 0; i < stories.questions.size(); ++i) {
      const auto& question = stories.questions[i];
      answers_.insert(question.answer);
      if (splits[i] != Split::train) continue;
      for (const auto& word : question.words) vocabulary_.count(word);
      for (auto s = question.first; s < question.end; ++s)
        if (counted.insert(s).second)
          for (const auto& word : stories.sentences[s]) vocabulary_.count(word);
    }
    vocabulary_.close(2);
    add(stories);
  }

  std::vector<int> indices(const std::vector<std::string>& words) {
    std::vector<int> result;
    for (const auto& word : words) result.push_back(vocabulary_.index(word));
    words_ = std::max(words_, result.size());
    return result;
  }

  void add(const BabiStories& stories) {
    const auto offset = sentences_.size();
    for (const auto& sentence : stories.sentences) sentences_.push_back(indices(sentence));
    for (const auto& question : stories.questions) {
      const auto cut = std::max(question.first + memory_, question.end) - memory_;  // the last `memory_` sentences
      cut_ += cut > question.first;
      Question kept{cut + offset, question.end + offset, indices(question.words), {}, 0};
      for (auto s : question.support)
        if (s >= cut) kept.support.push_back(s + offset);
      kept.answer = static_cast<int>(std::distance(answers_.begin(), answers_.find(question.answer)));
      questions_.push_back(std::move(kept));
    }
  }

  std::size_t memory_, words_ = 0, sentences_in_memory_ = 0, cut_ = 0;
  Vocabulary vocabulary_;
  std::set<std::string> answers_;  // in order: an answer's class is its place
  std::vector<std::vector<int>> sentences_;
  std::vector<Question> questions_;
  std::array<std::vector<int>, 3> splits_;
  std::string provenance_;
};

using P = ParameterInfo;

const Registration<TaskEntry> registered({
    .name = "qa",
    .summary = "questions about short stories, with attention to sentences",
    .data = "generated, or bAbI files (plain or .gz)",
    .default_model = "memory_reader",
    .parameters = {P::text("path", "", "a bAbI training file; none: generated stories"),
                   P::text("test_path", "", "its test file; none: the same name with test for train"),
                   P::integer("memory", 50, 1, 10000, "most sentences in memory: the last ones"),
                   P::real("heldout", 0.1, 0, 1, "share of the training stories held out for validation").below(),
                   P::real("test", 0.1, 0, 1, "share of the stories held out for the test (generated)").below(),
                   P::choice("supporting_facts", "1", {"1", "2"}, "1: where is Mary; 2: where is the football (generated)"),
                   P::integer("stories", 200, 1, 1e6, "stories to generate"),
                   P::integer("questions", 5, 1, 100, "questions per story (generated)"),
                   P::integer("people", 4, 1, 8, "people in the stories (generated)"),
                   P::integer("places", 6, 2, 8, "places in the stories (generated)")},
    .make = [](const Settings& settings, Key key) -> std::unique_ptr<Task> {
      return std::make_unique<QuestionAnswering>(settings, key);
    },
});

}  // namespace
}  // namespace hardgrad
