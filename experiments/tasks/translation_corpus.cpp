// Corpora for translation: reading by format, then selection by length and number.
#include "experiments/tasks/translation_corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/support/error.hpp"
#include "experiments/tasks/loaders/gold_links.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/loaders/parallel_text.hpp"
#include "experiments/tasks/sentence_grammar.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
namespace {

void need_path(const Settings& settings, bool two) {
  const auto data = settings.text("data");
  if (settings.text("path").empty()) throw UsageError(fmt::format("translation: data={} needs path=FILE", data));
  if (two && settings.text("target_path").empty())
    throw UsageError("translation: data=text needs path=FILE (source) and target_path=FILE (its translation)");
}

TranslationCorpus read(const Settings& settings, Key key) {
  const auto& data = settings.text("data");
  const auto path = find_input(settings.text("path")), target_path = find_input(settings.text("target_path"));
  const bool lower = settings.flag("lower_case");
  if (data == "generated" && !path.empty())
    throw UsageError("translation: path is given, but data=generated; give its format: data=tatoeba or text");
  const auto links = find_input(settings.text("links"));
  for (const auto* name : {"target_path", "links"})
    if (data != "text" && !settings.text(name).empty())
      throw UsageError(fmt::format("translation: {} is for data=text only", name));
  if (!links.empty() && settings.text("symbols") == "letters")
    throw UsageError("translation: links are between words; they do not go with symbols=letters");
  TranslationCorpus corpus;
  if (data == "generated") {
    const SentenceGrammar grammar{settings.integer("words"), settings.integer("min_length"), settings.integer("max_length")};
    for (int i = 0; i < settings.integer("examples"); ++i) {
      auto pair = grammar.generate(key / "sentence" / static_cast<std::uint64_t>(i));
      corpus.pairs.push_back({std::move(pair.source), std::move(pair.target)});
      for (std::size_t t = 0; t < pair.alignment.size(); ++t)
        corpus.pairs.back().gold.add({pair.alignment[t], static_cast<int>(t)}, true);
    }
  } else {
    const bool text = data == "text";
    need_path(settings, text);
    const auto pairs = text ? read_parallel_text(path, target_path) : read_tab_pairs(path);
    const auto words = [&](const std::string& sentence) {
      return links.empty() ? tokenize(sentence, lower) : between_blanks(lower ? lower_case(sentence) : sentence);
    };
    for (const auto& [first, second] : pairs) {
      const bool swapped = !text && settings.integer("source_column") == 2;
      corpus.pairs.push_back({words(swapped ? second : first), words(swapped ? first : second)});
    }
    if (!links.empty()) {
      std::vector<PairLengths> lengths;
      for (const auto& [source, target, gold] : corpus.pairs)
        lengths.push_back({static_cast<int>(source.size()), static_cast<int>(target.size())});
      auto gold = read_gold_links(links, lengths);
      for (std::size_t i = 0; i < gold.size(); ++i) corpus.pairs[i].gold = std::move(gold[i]);
    }
    corpus.origin = text ? path + " and " + target_path : path;
  }
  corpus.read = corpus.pairs.size();
  corpus.blank = std::erase_if(corpus.pairs, [](const auto& pair) { return pair.source.empty() || pair.target.empty(); });
  return corpus;
}

/// Drops pairs of the wrong length and, beyond the limit, those with the highest hashes of the source.
void select(TranslationCorpus& corpus, const Settings& settings, Key key) {
  const auto low = static_cast<std::size_t>(settings.integer("min_length")),
             high = static_cast<std::size_t>(settings.integer("max_length"));
  auto& pairs = corpus.pairs;
  const auto fits = [&](const std::vector<std::string>& words) { return words.size() >= low && words.size() <= high; };
  corpus.wrong_length =
      std::erase_if(pairs, [&](const SequencePair& pair) { return !fits(pair.source) || pair.target.size() > high; });
  const auto limit = static_cast<std::size_t>(settings.integer("limit"));
  if (limit == 0 || pairs.size() <= limit) return;
  std::vector<std::uint64_t> hashes;
  hashes.reserve(pairs.size());
  for (const auto& pair : pairs) hashes.push_back((key / joined(pair.source)).value());
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return hashes[a] < hashes[b]; });
  order.resize(limit);
  std::sort(order.begin(), order.end());
  std::vector<SequencePair> kept;
  kept.reserve(limit);
  for (auto i : order) kept.push_back(std::move(pairs[i]));
  corpus.beyond_limit = pairs.size() - limit;
  pairs = std::move(kept);
}

std::vector<std::string> letters_of(const std::vector<std::string>& words) {
  std::vector<std::string> letters;
  for (const auto& word : words) {
    if (!letters.empty()) letters.emplace_back(blank_letter);
    for (auto& letter : characters(word)) letters.push_back(std::move(letter));
  }
  return letters;
}

}  // namespace

TranslationCorpus read_translation_corpus(const Settings& settings, Key key) {
  auto corpus = read(settings, key);
  select(corpus, settings, key / "limit");
  if (corpus.pairs.empty())
    throw InputError(fmt::format(
        "{}: nothing left: of {} pairs, {} are shorter than min_length={} or longer than "
        "max_length={}; raise max_length",
        corpus.origin, corpus.read, corpus.wrong_length, settings.integer("min_length"), settings.integer("max_length")));
  if (settings.text("symbols") == "letters")
    for (auto& pair : corpus.pairs) pair = {letters_of(pair.source), letters_of(pair.target)};
  return corpus;
}

}  // namespace hardgrad::tasks
