// Cloze questions about anonymised reports: generated, or CNN / Daily Mail question files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/random/randomness.hpp"
#include "experiments/tasks/generated_stories.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks::cloze {
namespace {

struct Config {
  std::string path;
  std::size_t limit = 0, length = 2000, vocabulary = 0;
  SplitShares shares{.heldout = 0.1, .test = 0.1};
  int questions = 1000, facts = 6, entities = 6, relations = 4;

  void declare(Fields& field) {
    field.file(path, "path", "a folder with training/, validation/ and test/ of question files; empty: generated");
    field(limit, "limit", 0, 1e9, "most files read of each folder, the first ones; 0: all");
    field(length, "length", 1, 1e6, "most tokens read of a document, the first ones");
    field(vocabulary, "vocabulary", 0, 1e6, "most words, not counting entities; 0: all of the training split");
    shares.declare(field, "share of the reports held out for validation (generated)",
                   "share of the reports held out for the test (generated)");
    field(questions, "questions", 1, 1e6, "questions to generate, each with its own report");
    field(facts, "facts", 1, 200, "sentences per report (generated)");
    field(entities, "entities", 3, 500, "possible entities of a report (generated)");
    field(relations, "relations", 1, newsroom_relations(), "kinds of facts (generated)");
  }
};

/// Fields: "document" [B, N] and "document_length" [B]; "question" [B, Q] and "question_length" [B]; "answer" [B] the number of
/// an entity; "support" [B, N] 1 for the tokens of the sentence with the answer, all 0 if it is unknown.
///
/// Entities have no names. Each question numbers them by its own random permutation of A numbers, so a number has a meaning
/// only within its document, and an answer requires reading. Token numbers are those of the words, then @placeholder, then the
/// A entities. With `like`, the task that a network was trained on, words and A are those of that task.
class Cloze final : public Listed {
 public:
  Cloze(const Config& config, Key key, const Cloze* like) : longest_(config.length) {
    const auto path = find_input(config.path);
    std::vector<ClozeQuestion> questions;
    std::vector<Split> splits;
    if (path.empty()) {
      require_shares("cloze", config.shares);
      const Newsroom newsroom{config.facts, config.entities, config.relations};
      std::vector<std::string> reports;
      for (int i = 0; i < config.questions; ++i) {
        questions.push_back(newsroom.report(key / "report" / static_cast<std::uint64_t>(i)));
        reports.emplace_back();
        for (const auto& token : questions.back().document) reports.back() += token + " ";
      }
      splits = split_by_group(reports, config.shares.heldout, config.shares.test, key / "split");
    } else {
      read_files(path, config.limit, questions, splits);
      provenance_ = path;
    }
    add(questions, splits, config.vocabulary, key / "names", like);
    part(texts_of_kept_, splits_of_kept_, key / "order",
         "no question is left to train on; give more questions, or a larger length");
    provenance_ += fmt::format(
        ": {} questions to train, {} held out, {} to test; {} documents cut to {} tokens; {} left out: their answer is not in "
        "the document",
        size(Split::train), size(Split::heldout), size(Split::test), cut_, longest_, unanswerable_);
    if (like) provenance_ += fmt::format("; {} left out: they name more than {} entities", crowded_, entities_);
  }

  Dimensions dimensions() const override {
    return {{"vocabulary", placeholder_token() + 1 + entities_},
            {"answers", entities_},
            {"document_length", static_cast<int>(longest_document_)},
            {"question_length", static_cast<int>(longest_question_)}};
  }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.id = ids(split, indices);
    auto document = padded(batch.id, examples_, &Example::document), question = padded(batch.id, examples_, &Example::question);
    Array<int> answer = zeros<int>({batch.id.size()}), support = zeros<int>(document.values.shape());
    for (std::size_t b = 0; b < batch.id.size(); ++b) {
      for (auto token : examples_[batch.id[b]].support) support(b, token) = 1;
      answer(b) = examples_[batch.id[b]].answer;
    }
    batch.integers = {{"document", std::move(document.values)},
                      {"document_length", std::move(document.length)},
                      {"question", std::move(question.values)},
                      {"question_length", std::move(question.length)},
                      {"answer", std::move(answer)},
                      {"support", std::move(support)}};
    return batch;
  }

  std::string word(const std::string& field, int number) const override {
    if (field == "answer") return entity(number);
    if (number == Vocabulary::pad || (field != "document" && field != "question")) return {};
    if (number < placeholder_token()) return vocabulary_.word(number);
    return number == placeholder_token() ? std::string(placeholder) : entity(number - placeholder_token() - 1);
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "accuracy", .unit = "1", .share = true},
            {.name = "answer_hit", .unit = "1"},
            {.name = "support_hit", .unit = "1"}};
  }
  /// Hits of the last read: answer_hit on any token of the answer, support_hit on the sentence with the answer if it is known.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &answer = batch.ints("answer"), &document = batch.ints("document"), &support = batch.ints("support");
    const auto last_of = [](std::span<const int> values) {  // -1 pads
      const auto last = std::find_if(values.rbegin(), values.rend(), [](int value) { return value >= 0; });
      return last == values.rend() ? -1 : *last;
    };
    const auto last_read = [](std::span<const int> picked, std::size_t subset_size) {  // its tokens; empty if there are none
      while (!picked.empty() && picked[picked.size() - subset_size] < 0) picked = picked.first(picked.size() - subset_size);
      return picked.last(std::min(subset_size, picked.size()));
    };
    const auto& lengths = batch.ints("question_length");
    for (std::size_t b = 0; b < answer.size(); ++b) {
      metrics[0].add(last_of(row_of(seen.predictions, b)) == answer(b));
      // An impatient reader reads once per token of the question; later entries are padding.
      const auto reads =
          row_of(seen.choices, b).first(std::min<std::size_t>(row_of(seen.choices, b).size(), lengths(b) * seen.subset_size));
      const auto read = last_read(reads, seen.subset_size);
      if (read.empty()) continue;
      const auto any = [&](auto&& hit) {
        return std::any_of(read.begin(), read.end(), [&](int i) { return i >= 0 && hit(i); });
      };
      metrics[1].add(any([&](int i) { return document(b, i) == placeholder_token() + 1 + answer(b); }));
      const auto sentence = row_of(support, b);
      if (std::count(sentence.begin(), sentence.end(), 1) == 0) continue;
      metrics[2].add(any([&](int i) { return sentence[i] == 1; }));
    }
  }

 private:
  struct Example {
    std::vector<int> document, question;
    std::vector<std::size_t> support;
    int answer;
  };

  static std::string entity(int number) { return "@entity" + std::to_string(number); }
  int placeholder_token() const { return vocabulary_.size(); }

  static void read_files(const std::string& path, std::size_t limit, std::vector<ClozeQuestion>& questions,
                         std::vector<Split>& splits) {
    constexpr std::array folders = {"training", "validation", "test"};
    std::size_t memory = 0;
    for (const auto split : {Split::train, Split::heldout, Split::test}) {
      auto files = question_files(path + "/" + folders[static_cast<std::size_t>(split)]);
      if (limit > 0 && files.size() > limit) files.resize(limit);
      for (const auto& file : files) {
        questions.push_back(parse_cnn_question(read_text(file)));
        splits.push_back(split);
        memory += (questions.back().document.size() + questions.back().question.size()) * sizeof(std::string);
        if (memory > input_limit()) refuse_size(path, "its questions take");
      }
    }
  }

  // Words are those of the training split, or of `like`.
  void add(std::vector<ClozeQuestion>& questions, const std::vector<Split>& splits, std::size_t limit, Key names,
           const Cloze* like) {
    std::vector<std::map<std::string, int>> numbers(questions.size());  // of the entities, by first occurrence
    for (std::size_t i = 0; i < questions.size(); ++i) {
      auto& [document, question, answer, support] = questions[i];
      if (document.size() > longest_) {
        document.resize(longest_);
        std::erase_if(support, [&](std::size_t token) { return token >= longest_; });
        ++cut_;
      }
      for (const auto* tokens : {&document, &question})
        for (const auto& token : *tokens)
          if (is_entity(token))
            numbers[i].try_emplace(token, static_cast<int>(numbers[i].size()));
          else if (!like && splits[i] == Split::train && token != placeholder)
            vocabulary_.count(token);
      if (!like) entities_ = std::max(entities_, static_cast<int>(numbers[i].size()));
    }
    if (like) {
      vocabulary_ = like->vocabulary_;
      entities_ = like->entities_;
    } else {
      vocabulary_.close(2, limit);
    }
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const auto& [document, question, answer, support] = questions[i];
      if (std::find(document.begin(), document.end(), answer) == document.end()) {
        ++unanswerable_;
        continue;
      }
      if (numbers[i].size() > static_cast<std::size_t>(entities_)) {
        ++crowded_;
        continue;
      }
      const auto number = permutation(static_cast<std::size_t>(entities_), names / static_cast<std::uint64_t>(i));
      const auto token_of = [&](const std::string& token) {
        if (is_entity(token)) return placeholder_token() + 1 + number[numbers[i].at(token)];
        return token == placeholder ? placeholder_token() : vocabulary_.index(token);
      };
      Example example{{}, {}, support, number[numbers[i].at(answer)]};
      for (const auto& token : document) example.document.push_back(token_of(token));
      for (const auto& token : question) example.question.push_back(token_of(token));
      longest_document_ = std::max(longest_document_, document.size());
      longest_question_ = std::max(longest_question_, question.size());
      examples_.push_back(std::move(example));
      splits_of_kept_.push_back(splits[i]);
      texts_of_kept_.push_back(fmt::format("{}\t{}", fmt::join(document, " "), fmt::join(question, " ")));
    }
  }

  std::size_t longest_, longest_document_ = 0, longest_question_ = 0, cut_ = 0, unanswerable_ = 0, crowded_ = 0;
  int entities_ = 0;  // A: most entities of a question
  Vocabulary vocabulary_;
  std::vector<Example> examples_;
  std::vector<Split> splits_of_kept_;
  std::vector<std::string> texts_of_kept_;
};

const TaskEntry entry = {
    .name = "cloze",
    .summary = "the anonymised entity that is missing in a sentence about a report",
    .data = "generated, or CNN / Daily Mail question files (plain or .gz)",
    .default_model = "attentive_reader",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Cloze, entry)

}  // namespace
}  // namespace hardgrad::tasks::cloze
