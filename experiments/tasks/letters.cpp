// The language of characters: pieces of a text, whose labels are the next characters.
//
// The lines of the text, each with its end, are cut into pieces of length + 1 characters, without overlap; a rest is left out.
// Generated text: stories in bAbI's format (generated_stories.hpp). Equal pieces are in the same split.
#include <fmt/ranges.h>

#include "experiments/tasks/generated_stories.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/token_labels.hpp"

namespace hardgrad::tasks::letters {
namespace {

struct Config {
  std::string path;
  int stories = 200, length = 32;
  std::size_t vocabulary = 256;
  bool lower_case = false;
  SplitShares shares{.heldout = 0.1, .test = 0.1};

  void declare(Fields& field) {
    field.file(path, "path", "a text in UTF-8; empty: generated");
    field(stories, "stories", 1, 1e6, "stories to generate");
    field(length, "length", 1, 100000, "characters of a piece that are read");
    field(vocabulary, "vocabulary", 3, 1e6, "different characters, including 2 special ones; rarer ones are unknown");
    field(lower_case, "lower_case", "fold characters to lower case");
    shares.declare(field, "share of pieces held out for validation", "share of pieces held out for the test");
  }
};

/// Fields as in token_labels.hpp; numbers of characters are those of Vocabulary.
class Letters final : public Listed {
 public:
  Letters(const Config& config, Key key, const Letters* trained) : length_(config.length) {
    require_shares("letters", config.shares);
    const auto path = find_input(config.path);
    const auto text = path.empty() ? StoryWorld{.stories = config.stories}.tell(key / "stories") : read_text(path);
    if (!path.empty()) provenance_ = path;
    std::vector<std::string> read;
    for (const auto& line : text.lines) {
      for (auto& letter : characters(config.lower_case ? tasks::lower_case(line) : line)) read.push_back(std::move(letter));
      read.push_back("\n");
    }
    const auto each = static_cast<std::size_t>(length_) + 1;
    if (read.size() < each)
      throw InputError(fmt::format("{}: nothing left: a piece has length + 1 = {} characters, the text {}: lower length",
                                   provenance_, each, read.size()));
    std::vector<std::string> pieces;
    std::vector<std::vector<std::string>> split;
    for (std::size_t first = 0; first + each <= read.size(); first += each) {
      split.emplace_back(read.begin() + static_cast<std::ptrdiff_t>(first),
                         read.begin() + static_cast<std::ptrdiff_t>(first + each));
      pieces.push_back(fmt::format("{}", fmt::join(split.back(), "")));
    }
    const auto splits = split_by_group(pieces, config.shares.heldout, config.shares.test, key / "split");
    part(pieces, splits, key / "order", "no piece is left to train on; give more text, or heldout=0,test=0");
    if (trained) {
      vocabulary_ = trained->vocabulary_;
    } else {
      for (const int i : of(Split::train)) vocabulary_.count(split[static_cast<std::size_t>(i)]);
      vocabulary_.close(2, config.vocabulary);
    }
    for (const auto& piece : split) {
      const auto numbers = vocabulary_.indices(piece);
      auto& made = sequences_.emplace_back();
      for (std::size_t t = 0; t + 1 < numbers.size(); ++t) made.add(numbers[t], numbers[t + 1]);
    }
    provenance_ += fmt::format(": {} characters read; kept: {}", read.size(), counts());
  }

  Dimensions dimensions() const override {
    return {{"tokens", vocabulary_.size()}, {"positions", length_}, {"labels", vocabulary_.size()}};
  }
  Batch batch(Split split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.id = ids(split, indices);
    std::vector<TokenSequence> all;
    for (auto id : batch.id) all.push_back(sequences_[id]);
    put_tokens(all, batch);
    return batch;
  }
  std::string word(const std::string& field, int number) const override {
    if ((field != "token" && field != "label") || number < 0) return {};
    return vocabulary_.word(number) == "\n" ? "<eol>" : vocabulary_.word(number);
  }
  std::vector<Metric> metrics() const override { return label_metrics(); }
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    score_labels(batch, seen, metrics);
  }

 private:
  int length_;
  Vocabulary vocabulary_;
  std::vector<TokenSequence> sequences_;  // by id
};

const TaskEntry entry = {
    .name = "letters",
    .summary = "characters of a text; each predicts the next one",
    .data = "generated stories, or a text (plain or .gz)",
    .default_model = "transformer[places=rotary]",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Letters, entry)

}  // namespace
}  // namespace hardgrad::tasks::letters
