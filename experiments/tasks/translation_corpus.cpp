// Corpora for translation: reading by format, then selection by length and number.
#include "experiments/tasks/translation_corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/support/error.hpp"
#include "experiments/tasks/loaders/gold_links.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/loaders/parallel_text.hpp"
#include "experiments/tasks/sentence_grammar.hpp"
#include "experiments/tasks/splits.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
namespace {

/// "dev_" + "target_path", or "target_path" of the training files (no prefix).
std::string setting(const std::string& prefix, const char* name) { return prefix.empty() ? name : prefix + "_" + name; }

/// The pairs of the files `path` and, for data=text, `target_path`, with this prefix; `words` splits a sentence.
template <class F>
std::vector<SequencePair> read_pairs(const Settings& settings, const std::string& prefix, std::string& origin, F words) {
  const auto& data = settings.text("data");
  const bool text = data == "text";
  const auto source = setting(prefix, "path"), target = setting(prefix, "target_path");
  if (settings.text(source).empty()) throw UsageError(fmt::format("translation: data={} needs {}=FILE", data, source));
  if (text && settings.text(target).empty())
    throw UsageError(
        fmt::format("translation: data=text needs {}=FILE (source) and {}=FILE (its translation)", source, target));
  const auto path = find_input(settings.text(source)), target_path = find_input(settings.text(target));
  std::vector<SequencePair> pairs;
  for (const auto& [first, second] : text ? read_parallel_text(path, target_path) : read_tab_pairs(path)) {
    const bool swapped = !text && settings.integer("source_column") == 2;
    pairs.push_back({words(swapped ? second : first), words(swapped ? first : second)});
  }
  origin += fmt::format("{}{}{}", origin.empty() ? "" : ", " + prefix + ": ", path, text ? " and " + target_path : "");
  return pairs;
}

std::size_t drop_blank(std::vector<SequencePair>& pairs) {
  return std::erase_if(pairs, [](const auto& pair) { return pair.source.empty() || pair.target.empty(); });
}

TranslationCorpus read(const Settings& settings, Key key) {
  const auto& data = settings.text("data");
  const bool lower = settings.flag("lower_case");
  for (const auto* name : {"path", "dev_path", "test_path"})
    if (data == "generated" && !settings.text(name).empty())
      throw UsageError(
          fmt::format("translation: {} is given, but data=generated; give its format: data=tatoeba or text", name));
  const auto links = find_input(settings.text("links"));
  for (const auto* name : {"target_path", "dev_target_path", "test_target_path", "links"})
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
    const auto words = [&](const std::string& sentence) {
      return links.empty() ? tokenize(sentence, lower) : between_blanks(lower ? lower_case(sentence) : sentence);
    };
    corpus.origin.clear();
    corpus.pairs = read_pairs(settings, "", corpus.origin, words);
    if (!links.empty()) {
      std::vector<PairLengths> lengths;
      for (const auto& [source, target, gold] : corpus.pairs)
        lengths.push_back({static_cast<int>(source.size()), static_cast<int>(target.size())});
      auto gold = read_gold_links(links, lengths);
      for (std::size_t i = 0; i < gold.size(); ++i) corpus.pairs[i].gold = std::move(gold[i]);
    }
  }
  corpus.read = corpus.pairs.size();
  corpus.blank = drop_blank(corpus.pairs);
  return corpus;
}

/// Adds the pairs of `dev_path` and `test_path`, of any length.
void add_given(TranslationCorpus& corpus, const Settings& settings) {
  const bool lower = settings.flag("lower_case"), linked = !settings.text("links").empty();
  const auto words = [&](const std::string& sentence) {
    return linked ? between_blanks(lower ? lower_case(sentence) : sentence) : tokenize(sentence, lower);
  };
  for (const auto& [split, prefix] : given_splits) {
    if (settings.text(setting(prefix, "path")).empty() && settings.text(setting(prefix, "target_path")).empty()) continue;
    auto pairs = read_pairs(settings, prefix, corpus.origin, words);
    corpus.read += pairs.size();
    corpus.blank += drop_blank(pairs);
    corpus.given.insert(corpus.given.end(), pairs.size(), split);
    std::move(pairs.begin(), pairs.end(), std::back_inserter(corpus.pairs));
  }
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
  for (const auto& pair : pairs) hashes.push_back((key / lower_case(joined(pair.source))).value());
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
  add_given(corpus, settings);
  const bool generated = settings.text("data") == "generated";  // there case tells the languages apart
  for (const auto& pair : corpus.pairs)
    for (auto [side, text] : {std::pair{&corpus.sources, joined(pair.source)}, {&corpus.targets, joined(pair.target)}})
      side->push_back(generated ? text : lower_case(text));
  if (settings.text("symbols") == "letters")
    for (auto& pair : corpus.pairs) pair = {letters_of(pair.source), letters_of(pair.target)};
  return corpus;
}

}  // namespace hardgrad::tasks
