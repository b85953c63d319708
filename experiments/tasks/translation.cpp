// Translation: generated sentences with known alignment, Tatoeba pairs, parallel texts, or spelling to sound.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/support/error.hpp"
#include "experiments/tasks/bleu.hpp"
#include "experiments/tasks/splits.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/tasks/translation_corpus.hpp"
#include "experiments/tasks/vocabulary.hpp"

namespace hardgrad {
namespace {

/// Fields: "source" [B, L] and "source_length" [B]; "target" [B, T] with its final end mark and
/// "target_length" [B]; "alignment" [B, T] gold positions in the source, -1 where unknown; only there if
/// known at all.
class Translation final : public Task {
 public:
  Translation(const Settings& settings, Key key) {
    if (settings.integer("min_length") > settings.integer("max_length"))
      throw UsageError(fmt::format("translation: min_length must be at most max_length={}, got {}",
                                   settings.integer("max_length"), settings.integer("min_length")));
    if (settings.real("heldout") + settings.real("test") >= 1)
      throw UsageError("translation: heldout and test together must be below 1");
    auto corpus = read_translation_corpus(settings, key);

    std::vector<std::string> groups;
    for (const auto& pair : corpus.pairs) groups.push_back(joined(pair.source));
    const auto splits = split_by_group(groups, settings.real("heldout"), settings.real("test"), key / "split");
    splits_ = members(splits, key / "order");
    if (splits_[0].empty())
      throw InputError(fmt::format("{}: no sentence is left to train on; give more text, or heldout=0,test=0", corpus.origin));

    auto &source = source_words_, &target = target_words_;
    for (int i : splits_[0]) {
      for (const auto& word : corpus.pairs[i].source) source.count(word);
      for (const auto& word : corpus.pairs[i].target) target.count(word);
    }
    const auto limit = static_cast<std::size_t>(settings.integer("vocabulary"));
    source.close(4, limit);
    target.close(4, limit);
    dimensions_ = {{"source_vocabulary", source.size()},
                   {"target_vocabulary", target.size()},
                   {"source_length", 0},
                   {"target_length", 0},
                   {"bos", Vocabulary::begin},
                   {"eos", Vocabulary::end}};
    std::size_t unknown = 0, words = 0;
    for (auto& pair : corpus.pairs) {
      Example example;
      for (const auto& word : pair.source) example.source.push_back(source.index(word));
      for (const auto& word : pair.target) example.target.push_back(target.index(word));
      for (int word : example.target) unknown += word == Vocabulary::unknown;
      words += example.target.size();
      example.target.push_back(Vocabulary::end);
      example.alignment = std::move(pair.alignment);
      has_alignment_ = has_alignment_ || !example.alignment.empty();
      longest("source_length", example.source.size());
      longest("target_length", example.target.size());
      examples_.push_back(std::move(example));
    }
    provenance_ = fmt::format(
        "{}: {} pairs read; left out: {} with an empty side, {} variants, {} by length, {} beyond the limit; "
        "kept: {} train, {} "
        "heldout, {} test; {:.2f}% of target words unknown",
        corpus.origin, corpus.read, corpus.blank, corpus.variants, corpus.wrong_length, corpus.beyond_limit, splits_[0].size(),
        splits_[1].size(), splits_[2].size(), 100.0 * static_cast<double>(unknown) / static_cast<double>(words));
  }

  Dimensions dimensions() const override { return dimensions_; }
  std::size_t size(Split split) const override { return splits_[static_cast<std::size_t>(split)].size(); }
  std::string provenance() const override { return provenance_; }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    const auto& all = splits_[static_cast<std::size_t>(split)];
    Batch batch;
    std::size_t source_width = 0, target_width = 0;
    for (int i : indices) {
      const int id = all.at(static_cast<std::size_t>(i));
      batch.id.push_back(static_cast<std::uint32_t>(id));
      source_width = std::max(source_width, examples_[id].source.size());
      target_width = std::max(target_width, examples_[id].target.size());
    }
    const auto B = indices.size();
    Array<int> source({B, source_width}, Vocabulary::pad), target({B, target_width}, Vocabulary::pad),
        alignment({B, target_width}, -1), source_length({B}), target_length({B});
    for (std::size_t b = 0; b < B; ++b) {
      const auto& example = examples_[batch.id[b]];
      std::copy(example.source.begin(), example.source.end(), source.row(b).begin());
      std::copy(example.target.begin(), example.target.end(), target.row(b).begin());
      std::copy(example.alignment.begin(), example.alignment.end(), alignment.row(b).begin());
      source_length.data[b] = static_cast<int>(example.source.size());
      target_length.data[b] = static_cast<int>(example.target.size());
    }
    batch.integers = {{"source", std::move(source)},
                      {"source_length", std::move(source_length)},
                      {"target", std::move(target)},
                      {"target_length", std::move(target_length)}};
    if (has_alignment_) batch.integers["alignment"] = std::move(alignment);
    return batch;
  }

  std::string word(const std::string& field, int number) const override {
    if (number == Vocabulary::pad || (field != "source" && field != "target")) return {};
    return (field == "source" ? source_words_ : target_words_).word(number);
  }

  std::vector<Metric> metrics() const override {
    std::vector<Metric> result = {{.name = "token_accuracy", .unit = "1"},
                                  {.name = "exact_match", .unit = "1"},
                                  {.name = "bleu", .unit = "1", .sums = {}, .formula = bleu},
                                  {.name = "exact_match_decoded", .unit = "1"}};
    if (has_alignment_) result.push_back({.name = "alignment_error_rate", .unit = "1", .higher_is_better = false});
    return result;
  }

  /// Teacher-forced. One choice (of every head of attention) and one gold link per word, so Och & Ney's (2003) alignment error
  /// rate is the share of choices that are not the gold one; the end mark has no gold and is left out.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &target = batch.ints("target"), &length = batch.ints("target_length");
    const auto steps = [](const Array<int>& array) { return array.shape.size() < 2 ? 0 : array.shape[1]; };
    for (std::size_t b = 0; b < length.size(); ++b) {
      const auto n = static_cast<std::size_t>(length.data[b]);
      std::size_t right = 0;
      for (std::size_t t = 0; t < std::min(n, steps(seen.predictions)); ++t)
        right += seen.predictions.row(b)[t] == target.row(b)[t];
      add(metrics[0], static_cast<double>(right), static_cast<double>(n));
      add(metrics[1], right == n, 1);
      if (!has_alignment_) continue;
      const auto heads = std::max<std::size_t>(steps(seen.choices) / std::max<std::size_t>(steps(seen.predictions), 1), 1);
      for (std::size_t i = 0; i < std::min(n * heads, steps(seen.choices)); ++i) {
        const int gold = batch.ints("alignment").row(b)[i / heads], chosen = seen.choices.row(b)[i];
        if (gold >= 0 && chosen >= 0) add(metrics[4], chosen != gold, 1);
      }
    }
  }

  bool decodes() const override { return true; }
  /// Free-running answers end at the first end mark. An unknown word in an answer never counts as right for
  /// BLEU.
  void score_decoded(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &target = batch.ints("target"), &length = batch.ints("target_length");
    for (std::size_t b = 0; b < length.size(); ++b) {
      const auto reference = target.row(b).first(static_cast<std::size_t>(length.data[b]) - 1);
      const auto answer = before_end(seen.predictions.row(b), Vocabulary::end);
      add_bleu(answer, reference, Vocabulary::unknown, metrics[2].sums);
      add(metrics[3], std::equal(answer.begin(), answer.end(), reference.begin(), reference.end()), 1);
    }
  }

 private:
  struct Example {
    std::vector<int> source, target, alignment;
  };
  static void add(Metric& metric, double numerator, double denominator) {
    metric.numerator += numerator;
    metric.denominator += denominator;
  }
  void longest(const std::string& name, std::size_t length) {
    dimensions_[name] = std::max(dimensions_[name], static_cast<int>(length));
  }
  std::vector<Example> examples_;
  Vocabulary source_words_, target_words_;
  std::array<std::vector<int>, 3> splits_;
  Dimensions dimensions_;
  bool has_alignment_ = false;
  std::string provenance_;
};

using P = ParameterInfo;

const Registration<TaskEntry> registered({
    .name = "translation",
    .summary = "sentences word by word, with attention to the source",
    .data = "generated, a Tatoeba/Anki tab file, two parallel texts, or CMUdict (all plain or .gz)",
    .default_model = "translator",
    .parameters = {P::choice("data", "generated", {"generated", "tatoeba", "text", "cmudict"}, "what is translated"),
                   P::text("path", "", "the file: pairs, source sentences, or dictionary"),
                   P::text("target_path", "", "the target sentences (data=text)"),
                   P::integer("source_column", 2, 1, 2,
                              "the tab file's column to translate from; 2: German to English (data=tatoeba)"),
                   P::integer("examples", 2000, 1, 1e7, "sentences to generate (data=generated)"),
                   P::integer("words", 8, 1, 1e5, "nouns, verbs, adjectives: so many of each (data=generated)"),
                   P::integer("vocabulary", 2000, 5, 1e6, "entries per side, with 4 special ones; rarer words are unknown"),
                   P::integer("min_length", 1, 1, 1000, "fewest words of a source sentence"),
                   P::integer("max_length", 10, 1, 1000, "most words of a sentence, without the end mark"),
                   P::integer("limit", 0, 0, 1e8, "most pairs, drawn by a hash; 0: all"),
                   P::real("heldout", 0.05, 0, 1, "share of source sentences held out for validation").below(),
                   P::real("test", 0.05, 0, 1, "share of source sentences held out for the test").below(),
                   P::flag("lower_case", true, "fold to lower case"),
                   P::flag("variants", true, "take second pronunciations, word(2), too (data=cmudict)"),
                   P::flag("stress", false, "keep the vowels' stress digits (data=cmudict)")},
    .make = [](const Settings& settings, Key key) -> std::unique_ptr<Task> {
      return std::make_unique<Translation>(settings, key);
    },
});

}  // namespace
}  // namespace hardgrad
