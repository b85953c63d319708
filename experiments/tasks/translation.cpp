// Translation: generated sentences with known alignment, Tatoeba pairs, or parallel texts with or without links.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/support/bleu.hpp"
#include "core/support/error.hpp"
#include "experiments/tasks/sequence_task.hpp"
#include "experiments/tasks/splits.hpp"
#include "experiments/tasks/translation_corpus.hpp"

namespace hardgrad::tasks::translation {
namespace {

class Translation final : public SequenceTask {
 public:
  Translation(const Settings& settings, Key key, const Translation* trained) : letters_(settings.text("symbols") == "letters") {
    if (trained && trained->letters_ != letters_)
      throw UsageError(
          fmt::format("translation: the network was trained on {0}; symbols={0}", trained->letters_ ? "letters" : "words"));
    if (settings.integer("min_length") > settings.integer("max_length"))
      throw UsageError(fmt::format("translation: min_length must be at most max_length={}, got {}",
                                   settings.integer("max_length"), settings.integer("min_length")));
    require_shares("translation", settings);
    auto corpus = read_translation_corpus(settings, key);
    provenance_ = corpus.origin;
    const auto &sources = corpus.sources, &targets = corpus.targets;
    // In real corpora a sentence has several translations, and a decoder can memorise one. Groups keep them together. Generated
    // sentences share translations by design, so there only equal sources are grouped.
    const auto drawn = static_cast<std::ptrdiff_t>(sources.size() - corpus.given.size());  // the last pairs have their split
    const Sides first(sources.begin(), sources.begin() + drawn), second(targets.begin(), targets.begin() + drawn);
    auto groups = settings.text("data") == "generated" ? first : groups_by_either(first, second);
    auto splits = split_by_group(groups, share_of(Split::heldout, settings), share_of(Split::test, settings), key / "split");
    for (auto source = sources.begin() + drawn; source != sources.end(); ++source) groups.push_back("given " + *source);
    splits.insert(splits.end(), corpus.given.begin(), corpus.given.end());
    take(std::move(corpus.pairs), splits, static_cast<std::size_t>(settings.integer("vocabulary")), key / "order",
         "no sentence is left to train on; give more text, or heldout=0,test=0", trained);
    provenance_ += fmt::format(
        ": {} pairs read; left out: {} with an empty side, {} by length, {} beyond the limit; kept: {}; {:.2f}% of target "
        "{} unknown; {}",
        corpus.read, corpus.blank, corpus.wrong_length, corpus.beyond_limit, counts(), 100 * unknown(),
        settings.text("symbols"), overlap(sources, targets, groups, splits));
  }

 protected:
  std::vector<Metric> own_metrics() const override {
    return {{.name = "bleu", .unit = "1", .share = true, .sums = {}, .formula = bleu}};
  }
  /// BLEU over words. An unknown word, or one with an unknown letter, never matches.
  void judge(std::uint32_t id, std::span<const int> answer, std::vector<Metric>& own) const override {
    if (!letters_) return add_bleu(answer, reference(id), Vocabulary::unknown, own[0].sums);
    std::map<std::vector<int>, int> number;
    const auto answered = spelled(answer, number), right = spelled(reference(id), number);
    add_bleu(answered, right, Vocabulary::unknown, own[0].sums);
  }

 private:
  /// The words between blanks, as numbers.
  std::vector<int> spelled(std::span<const int> symbols, std::map<std::vector<int>, int>& number) const {
    std::vector<int> words, word;
    const auto close = [&] {
      const bool known = std::find(word.begin(), word.end(), Vocabulary::unknown) == word.end();
      const int next = Vocabulary::unknown + 1 + static_cast<int>(number.size());
      if (!word.empty()) words.push_back(known ? number.try_emplace(word, next).first->second : Vocabulary::unknown);
      word.clear();
    };
    for (int symbol : symbols)
      if (target_word(symbol) == blank_letter)
        close();
      else
        word.push_back(symbol);
    close();
    return words;
  }

  bool letters_;
};

using P = ParameterInfo;

const TaskEntry entry = {
    .name = "translation",
    .summary = "translation of sentences, word by word, with attention to the source",
    .data = "generated, a Tatoeba/Anki tab file, or two parallel texts, optionally with links (all plain or .gz)",
    .default_model = "translator",
    .parameters = {P::choice("data", "generated", {"generated", "tatoeba", "text"}, "format of the data"),
                   P::file("path", "file of pairs (data=tatoeba) or of source sentences (data=text)"),
                   P::file("target_path", "file of target sentences (data=text)"),
                   P::file("dev_path", "the same of the development split, used whole; replaces the share heldout"),
                   P::file("dev_target_path", "its target sentences (data=text)"),
                   P::file("test_path", "the same of the test split; replaces the share test"),
                   P::file("test_target_path", "its target sentences (data=text)"),
                   P::file("links",
                           "gold links between words, which are split at blanks (data=text): lines of 0-0 1?2, or of sentence, "
                           "source, target, S or P"),
                   P::choice("symbols", "words", {"words", "letters"},
                             "symbols of source and target; lengths are always in words, and letters have no links"),
                   P::integer("source_column", 2, 1, 2,
                              "the tab file's column to translate from; 2: German to English (data=tatoeba)"),
                   P::integer("examples", 2000, 1, 1e7, "sentences to generate (data=generated)"),
                   P::integer("words", 8, 1, 1e5, "number of nouns, of verbs and of adjectives (data=generated)"),
                   P::integer("vocabulary", 2000, 5, 1e6,
                              "entries per side, including 4 special ones; rarer words are unknown"),
                   P::integer("min_length", 1, 1, 1000, "fewest words of a source sentence"),
                   P::integer("max_length", 10, 1, 1000, "most words of a sentence, without the end mark"),
                   P::integer("limit", 0, 0, 1e8, "most pairs, drawn by a hash; 0: all"),
                   P::real("heldout", 0.05, 0, 1,
                           "share held out for validation, of groups of pairs with a common sentence (data=generated: source)")
                       .below(),
                   P::real("test", 0.05, 0, 1, "share held out for the test, of the same groups").below(),
                   P::flag("lower_case", true, "fold to lower case")},
};
HARDGRAD_TASK(Translation, entry)

}  // namespace
}  // namespace hardgrad::tasks::translation
