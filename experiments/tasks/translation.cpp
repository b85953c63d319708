// Translation: generated sentences with known alignment, Tatoeba pairs, or parallel texts with or without links.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/support/error.hpp"
#include "core/support/text_metrics.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/sequence_task.hpp"
#include "experiments/tasks/translation_corpus.hpp"

namespace hardgrad::tasks::translation {
namespace {

class Translation final : public SequenceTask {
 public:
  Translation(const TranslationConfig& config, Key key, const Translation* trained)
      : letters_(config.symbols == Symbols::letters) {
    if (trained && trained->letters_ != letters_)
      throw UsageError(
          fmt::format("translation: the network was trained on {0}; symbols={0}", trained->letters_ ? "letters" : "words"));
    if (config.min_length > config.max_length)
      throw UsageError(
          fmt::format("translation: min_length must be at most max_length={}, got {}", config.max_length, config.min_length));
    require_shares("translation", config.shares);
    auto corpus = read_translation_corpus(config, key);
    provenance_ = corpus.origin;
    const auto &sources = corpus.sources, &targets = corpus.targets;
    // In real corpora a sentence has several translations, and a decoder can memorise one. Groups keep them together. Generated
    // sentences share translations by design, so there only equal sources are grouped.
    const auto drawn = static_cast<std::ptrdiff_t>(sources.size() - corpus.given.size());  // the last pairs have their split
    const Sides first(sources.begin(), sources.begin() + drawn), second(targets.begin(), targets.begin() + drawn);
    auto groups = config.data == TextFormat::generated ? first : groups_by_either(first, second);
    auto splits = split_by_group(groups, share_without(config.dev.path, config.shares.heldout),
                                 share_without(config.test.path, config.shares.test), key / "split");
    for (auto source = sources.begin() + drawn; source != sources.end(); ++source) groups.push_back("given " + *source);
    splits.insert(splits.end(), corpus.given.begin(), corpus.given.end());
    take(std::move(corpus.pairs), splits, config.vocabulary, key / "order",
         "no sentence is left to train on; give more text, or heldout=0,test=0", trained);
    provenance_ += fmt::format(
        ": {} pairs read; left out: {} with an empty side, {} by length, {} beyond the limit; kept: {}; {:.2f}% of target "
        "{} unknown; {}",
        corpus.read, corpus.blank, corpus.wrong_length, corpus.beyond_limit, counts(), 100 * unknown(),
        name_of(config.symbols, all_symbols), overlap(sources, targets, groups, splits));
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

const TaskEntry entry = {
    .name = "translation",
    .summary = "translation of sentences, word by word, with attention to the source",
    .data = "generated, a Tatoeba/Anki tab file, or two parallel texts, optionally with links (all plain or .gz)",
    .default_model = "translator",
    .parameters = declared<TranslationConfig>(),
};
HARDGRAD_TASK(Translation, entry)

}  // namespace
}  // namespace hardgrad::tasks::translation
