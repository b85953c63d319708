// Classification of sentence pairs: generated paraphrases or entailment, or labelled pairs from a file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/support/text.hpp"
#include "experiments/tasks/generated_pairs.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/loaders/pairs.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks::pairs {
namespace {

constexpr Named<PhrasePairs::Kind> kinds[] = {{"phrase", PhrasePairs::Kind::phrase},
                                              {"paraphrase", PhrasePairs::Kind::paraphrase},
                                              {"entailment", PhrasePairs::Kind::entailment}};

enum class Together { pair, first, either };
constexpr Named<Together> all_together[] = {{"pair", Together::pair}, {"first", Together::first}, {"either", Together::either}};

struct Config {
  std::string path;
  PhrasePairs::Kind kind = PhrasePairs::Kind::paraphrase;
  int examples = 2000, words = 8;
  std::size_t limit = 0, max_length = 40, vocabulary = 0;
  bool lower_case = true;
  Together together = Together::either;
  SplitShares shares{.heldout = 0.1, .test = 0.1};

  void declare(Fields& field) {
    field.file(path, "path", "a file of labelled pairs; empty: generated");
    field(kind, "kind", kinds, "paraphrases of noun phrases or of sentences, or entailment of the second (generated)");
    field(examples, "examples", 1, 1e6, "pairs to generate");
    field(words, "words", 2, 1000, "number of nouns, of adjectives and of verbs (generated)");
    field(limit, "limit", 0, 1e9, "most pairs, the first ones; 0: all");
    field(max_length, "max_length", 1, 1000, "most tokens of a sentence; pairs with a longer one are left out");
    field(vocabulary, "vocabulary", 0, 1e6, "most words; 0: all of the training split");
    field(lower_case, "lower_case", "fold to lower case (path)");
    field(together, "together", all_together,
          "pairs that stay in one split: one pair, all with the same first sentence, or all that are "
          "connected by shared sentences (path; generated: one pair)");
    shares.declare(field, "share of the groups of `together` held out for validation",
                   "share of the groups held out for the test");
  }
};

/// Fields: words "first" [B, N] and "first_length" [B], "second" and "second_length" likewise; "label" [B]. Labels are numbered
/// in the order of their bytes; words are those of the training split. With `like`, the task that a network was trained on,
/// both are those of that task, and so are the longest sentences.
class Pairs final : public Listed {
 public:
  Pairs(const Config& config, Key key, const Pairs* like) {
    require_shares("pairs", config.shares);
    const auto path = find_input(config.path);
    std::array<std::size_t, 2> longest;
    longest.fill(config.max_length);
    for (std::size_t side = 0; like && side < 2; ++side) longest[side] = std::min(longest[side], like->longest_[side]);
    std::vector<LabelledPair> pairs;
    if (path.empty()) {
      const PhrasePairs phrases{config.words, config.kind};
      for (int i = 0; i < config.examples; ++i) pairs.push_back(phrases.generate(key / "pair" / static_cast<std::uint64_t>(i)));
    } else {
      const bool lower = config.lower_case;
      for (auto& [label, first, second] : read_labelled_pairs(path))
        pairs.push_back({std::move(label), tokenize(first, lower), tokenize(second, lower)});
      provenance_ = path;
    }
    const auto all = pairs.size();
    std::erase_if(pairs, [&](const LabelledPair& pair) {
      return pair.first.empty() || pair.second.empty() || pair.first.size() > longest[0] || pair.second.size() > longest[1];
    });
    const auto limit = config.limit;
    const auto left_out = all - pairs.size();
    if (limit > 0 && pairs.size() > limit) pairs.resize(limit);
    number(pairs, config, key, like);
    if (labels_.size() < 2)
      throw InputError(fmt::format("{}: all pairs have the label \"{}\"; there is nothing to learn", provenance_, labels_[0]));
    provenance_ += fmt::format(
        ": {} pairs to train, {} held out, {} to test; {} left out: empty, or of more than {} tokens; {}", size(Split::train),
        size(Split::heldout), size(Split::test), left_out,
        longest[0] == longest[1] ? std::to_string(longest[0]) : fmt::format("{} and {}", longest[0], longest[1]), overlap_);
  }

  Dimensions dimensions() const override {
    return {{"vocabulary", vocabulary_.size()},
            {"first_length", static_cast<int>(longest_[0])},
            {"second_length", static_cast<int>(longest_[1])},
            {"classes", static_cast<int>(labels_.size())}};
  }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.id = ids(split, indices);
    for (std::size_t side = 0; side < 2; ++side) {
      auto sentence = padded(
          batch.id, examples_, [side](const Example& example) -> auto& { return example.sentence[side]; });
      batch.integers[names[side]] = std::move(sentence.values);
      batch.integers[std::string(names[side]) + "_length"] = std::move(sentence.length);
    }
    Array<int> label = zeros<int>({batch.id.size()});
    for (std::size_t b = 0; b < batch.id.size(); ++b) label(b) = examples_[batch.id[b]].label;
    batch.integers["label"] = std::move(label);
    return batch;
  }

  std::string word(const std::string& field, int number) const override {
    if (field == "label") return number >= 0 && number < static_cast<int>(labels_.size()) ? labels_[number] : std::string();
    if (number == Vocabulary::pad || (field != names[0] && field != names[1])) return {};
    return vocabulary_.word(number);
  }

  std::vector<Metric> metrics() const override { return {{.name = "accuracy", .unit = "1", .share = true}}; }
  /// Scores the last prediction.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto& label = batch.ints("label");
    for (std::size_t b = 0; b < label.size(); ++b) {
      int answer = -1;
      for (int predicted : row_of(seen.predictions, b))
        if (predicted >= 0) answer = predicted;
      metrics[0].add(answer == label(b));
    }
  }

 private:
  static constexpr std::array names = {"first", "second"};
  struct Example {
    std::array<std::vector<int>, 2> sentence;
    int label;
  };

  /// Names of the groups that splits keep together. Generated pairs have so few words that shared sentences would connect them
  /// all; there a group is a pair.
  static std::vector<std::string> groups(const Sides& first, const Sides& second, const Config& config) {
    const bool generated = config.path.empty();
    if (!generated && config.together == Together::either) return groups_by_either(first, second);
    if (!generated && config.together == Together::first) return first;
    auto both = first;
    for (std::size_t i = 0; i < both.size(); ++i) both[i] += '\t' + second[i] + '\t';
    return both;
  }

  void number(const std::vector<LabelledPair>& pairs, const Config& config, Key key, const Pairs* like) {
    std::array<Sides, 2> sides;  // in lower case: splits do not depend on it
    std::vector<std::string> texts;
    std::set<std::string> labels;
    for (const auto& pair : pairs) {
      for (std::size_t side = 0; side < 2; ++side) {
        auto& text = sides[side].emplace_back();
        for (const auto& word : side == 0 ? pair.first : pair.second) text += lower_case(word) + " ";
      }
      texts.push_back(fmt::format("{}\t{}\t{}", pair.label, sides[0].back(), sides[1].back()));
      labels.insert(pair.label);
    }
    const auto together = groups(sides[0], sides[1], config);
    const auto splits = split_by_group(together, config.shares.heldout, config.shares.test, key / "split");
    overlap_ = overlap(sides[0], sides[1], together, splits);
    if (like) {
      labels_ = like->labels_;
      vocabulary_ = like->vocabulary_;
      longest_ = like->longest_;
    } else {
      labels_.assign(labels.begin(), labels.end());
      for (std::size_t i = 0; i < pairs.size(); ++i)
        for (const auto* sentence : {&pairs[i].first, &pairs[i].second})
          if (splits[i] == Split::train) vocabulary_.count(*sentence);
      vocabulary_.close(2, config.vocabulary);
    }
    for (const auto& pair : pairs) {
      const auto label = std::lower_bound(labels_.begin(), labels_.end(), pair.label);
      if (label == labels_.end() || *label != pair.label)
        throw InputError(fmt::format("{}: \"{}\" is a label that the network cannot give: it was trained on other pairs",
                                     provenance_, excerpt(pair.label)));
      Example example{{}, static_cast<int>(label - labels_.begin())};
      for (std::size_t side = 0; side < 2; ++side) {
        const auto& sentence = side == 0 ? pair.first : pair.second;
        example.sentence[side] = vocabulary_.indices(sentence);
        if (!like) longest_[side] = std::max(longest_[side], sentence.size());
      }
      examples_.push_back(std::move(example));
    }
    part(texts, splits, key / "order", "no pair is left to train on; give more pairs, or a larger max_length");
  }

  std::array<std::size_t, 2> longest_{};
  std::string overlap_;
  std::vector<std::string> labels_;
  Vocabulary vocabulary_;
  std::vector<Example> examples_;
};

const TaskEntry entry = {
    .name = "pairs",
    .summary = "relation of two sentences: paraphrase or not, entailment or contradiction",
    .data = "generated paraphrases or entailment, or a file of lines \"label TAB sentence TAB sentence\" (plain or .gz)",
    .default_model = "sentence_pair",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Pairs, entry)

}  // namespace
}  // namespace hardgrad::tasks::pairs
