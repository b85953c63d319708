// Corpora for translation: reading by format, then selection by length and number.
#include "experiments/tasks/translation_corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/support/error.hpp"
#include "experiments/tasks/generated_pairs.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/loaders/pairs.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
namespace {

/// The pairs of these files; `words` splits a sentence.
template <class F>
std::vector<SequencePair> read_pairs(const TranslationConfig& config, const TextFiles& files, std::string& origin, F words) {
  const bool text = config.data == TextFormat::text;
  const auto source = files.prefix + "path", target = files.prefix + "target_path";
  if (files.path.empty())
    throw UsageError(fmt::format("translation: data={} needs {}=FILE", name_of(config.data, text_formats), source));
  if (text && files.target_path.empty())
    throw UsageError(
        fmt::format("translation: data=text needs {}=FILE (source) and {}=FILE (its translation)", source, target));
  const auto path = find_input(files.path), target_path = find_input(files.target_path);
  std::vector<SequencePair> pairs;
  for (const auto& [first, second] : text ? read_parallel_text(path, target_path) : read_tab_pairs(path)) {
    const bool swapped = !text && config.source_column == 2;
    pairs.push_back({words(swapped ? second : first), words(swapped ? first : second)});
  }
  origin += fmt::format("{}{}{}", origin.empty() ? "" : fmt::format(", {}: ", files.prefix.substr(0, files.prefix.size() - 1)),
                        path, text ? " and " + target_path : "");
  return pairs;
}

std::size_t drop_blank(std::vector<SequencePair>& pairs) {
  return std::erase_if(pairs, [](const auto& pair) { return pair.source.empty() || pair.target.empty(); });
}

TranslationCorpus read(const TranslationConfig& config, Key key) {
  const bool lower = config.lower_case;
  const auto all_files = {&config.train, &config.dev, &config.test};
  for (const auto* files : all_files)
    if (config.data == TextFormat::generated && !files->path.empty())
      throw UsageError(fmt::format("translation: {}path is given, but data=generated; give its format: data=tatoeba or text",
                                   files->prefix));
  const auto links = find_input(config.links);
  for (const auto* files : all_files)
    if (config.data != TextFormat::text && !files->target_path.empty())
      throw UsageError(fmt::format("translation: {}target_path is for data=text only", files->prefix));
  if (config.data != TextFormat::text && !config.links.empty()) throw UsageError("translation: links is for data=text only");
  if (!links.empty() && config.symbols == Symbols::letters)
    throw UsageError("translation: links are between words; they do not go with symbols=letters");
  TranslationCorpus corpus;
  if (config.data == TextFormat::generated) {
    const SentenceGrammar grammar{config.words, config.min_length, config.max_length};
    for (int i = 0; i < config.examples; ++i) {
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
    corpus.pairs = read_pairs(config, config.train, corpus.origin, words);
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
void add_given(TranslationCorpus& corpus, const TranslationConfig& config) {
  const bool lower = config.lower_case, linked = !config.links.empty();
  const auto words = [&](const std::string& sentence) {
    return linked ? between_blanks(lower ? lower_case(sentence) : sentence) : tokenize(sentence, lower);
  };
  for (const auto& [split, files] : {std::pair{Split::heldout, &config.dev}, {Split::test, &config.test}}) {
    if (files->path.empty() && files->target_path.empty()) continue;
    auto pairs = read_pairs(config, *files, corpus.origin, words);
    corpus.read += pairs.size();
    corpus.blank += drop_blank(pairs);
    corpus.given.insert(corpus.given.end(), pairs.size(), split);
    std::move(pairs.begin(), pairs.end(), std::back_inserter(corpus.pairs));
  }
}

/// Drops pairs of the wrong length and, beyond the limit, those with the highest hashes of the source.
void select(TranslationCorpus& corpus, const TranslationConfig& config, Key key) {
  const auto low = static_cast<std::size_t>(config.min_length), high = static_cast<std::size_t>(config.max_length);
  auto& pairs = corpus.pairs;
  const auto fits = [&](const std::vector<std::string>& words) { return words.size() >= low && words.size() <= high; };
  corpus.wrong_length =
      std::erase_if(pairs, [&](const SequencePair& pair) { return !fits(pair.source) || pair.target.size() > high; });
  const auto limit = config.limit;
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

void TranslationConfig::declare(Fields& field) {
  field(data, "data", text_formats, "format of the data");
  train.declare(field, "file of pairs (data=tatoeba) or of source sentences (data=text)",
                "file of target sentences (data=text)");
  dev.declare(field, "the same of the development split, used whole; replaces the share heldout",
              "its target sentences (data=text)");
  test.declare(field, "the same of the test split; replaces the share test", "its target sentences (data=text)");
  field.file(links, "links",
             "gold links between words, which are split at blanks (data=text): lines of 0-0 1?2, or of sentence, "
             "source, target, S or P");
  field(symbols, "symbols", all_symbols,
        "symbols of source and target; lengths are always in words, and letters have no links");
  field(source_column, "source_column", 1, 2, "the tab file's column to translate from; 2: German to English (data=tatoeba)");
  field(examples, "examples", 1, 1e7, "sentences to generate (data=generated)");
  field(words, "words", 1, 1e5, "number of nouns, of verbs and of adjectives (data=generated)");
  field(vocabulary, "vocabulary", 5, 1e6, "entries per side, including 4 special ones; rarer words are unknown");
  field(min_length, "min_length", 1, 1000, "fewest words of a source sentence");
  field(max_length, "max_length", 1, 1000, "most words of a sentence, without the end mark");
  field(limit, "limit", 0, 1e8, "most pairs, drawn by a hash; 0: all");
  shares.declare(field, "share held out for validation, of groups of pairs with a common sentence (data=generated: source)",
                 "share held out for the test, of the same groups");
  field(lower_case, "lower_case", "fold to lower case");
}

TranslationCorpus read_translation_corpus(const TranslationConfig& config, Key key) {
  auto corpus = read(config, key);
  select(corpus, config, key / "limit");
  if (corpus.pairs.empty())
    throw InputError(
        fmt::format("{}: nothing left: of {} pairs, {} are shorter than min_length={} or longer than "
                    "max_length={}; raise max_length",
                    corpus.origin, corpus.read, corpus.wrong_length, config.min_length, config.max_length));
  add_given(corpus, config);
  const bool generated = config.data == TextFormat::generated;  // there case tells the languages apart
  for (const auto& pair : corpus.pairs)
    for (auto [side, text] : {std::pair{&corpus.sources, joined(pair.source)}, {&corpus.targets, joined(pair.target)}})
      side->push_back(generated ? text : lower_case(text));
  if (config.symbols == Symbols::letters)
    for (auto& pair : corpus.pairs) pair = {letters_of(pair.source), letters_of(pair.target)};
  return corpus;
}

}  // namespace hardgrad::tasks
