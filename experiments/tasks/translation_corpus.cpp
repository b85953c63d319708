// Corpora for translation: read by kind, then selected by length and number.
#include "experiments/tasks/translation_corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "core/support/error.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/loaders/parallel_text.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad {
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
    throw UsageError("translation: path is given, but data=generated; say what it is: data=tatoeba, text or cmudict");
  if (data != "text" && !target_path.empty()) throw UsageError("translation: target_path is for data=text only");
  TranslationCorpus corpus;
  if (data == "generated") {
    const SentenceGrammar grammar{settings.integer("words"), settings.integer("min_length"), settings.integer("max_length")};
    for (int i = 0; i < settings.integer("examples"); ++i)
      corpus.pairs.push_back(grammar.generate(key / "sentence" / static_cast<std::uint64_t>(i)));
  } else if (data == "cmudict") {
    need_path(settings, false);
    for (auto& entry : read_cmudict(path)) {
      if (entry.variant > 1 && !settings.flag("variants")) {
        ++corpus.variants;
        continue;
      }
      if (!settings.flag("stress"))
        for (auto& phoneme : entry.phonemes)
          if (std::isdigit(static_cast<unsigned char>(phoneme.back()))) phoneme.pop_back();
      corpus.pairs.push_back({characters(lower ? lower_case(entry.word) : entry.word), std::move(entry.phonemes), {}});
    }
    corpus.origin = path;
  } else {
    const bool text = data == "text";
    need_path(settings, text);
    const auto pairs = text ? read_parallel_text(path, target_path, corpus.blank) : read_tab_pairs(path);
    for (const auto& [first, second] : pairs) {
      const bool swapped = !text && settings.integer("source_column") == 2;
      corpus.pairs.push_back({tokenize(swapped ? second : first, lower), tokenize(swapped ? first : second, lower), {}});
    }
    corpus.origin = text ? path + " and " + target_path : path;
  }
  corpus.read = corpus.pairs.size() + corpus.variants + corpus.blank;
  return corpus;
}

/// Leaves out pairs of the wrong length and, beyond the limit, those with the highest hashes of the source.
void select(TranslationCorpus& corpus, const Settings& settings, Key key) {
  const auto low = static_cast<std::size_t>(settings.integer("min_length")),
             high = static_cast<std::size_t>(settings.integer("max_length"));
  auto& pairs = corpus.pairs;
  const auto fits = [&](const std::vector<std::string>& words) { return words.size() >= low && words.size() <= high; };
  corpus.wrong_length = std::erase_if(
      pairs, [&](const AlignedPair& pair) { return !fits(pair.source) || pair.target.empty() || pair.target.size() > high; });
  const auto limit = static_cast<std::size_t>(settings.integer("limit"));
  if (limit == 0 || pairs.size() <= limit) return;
  std::vector<std::uint64_t> hashes;
  for (const auto& pair : pairs) hashes.push_back((key / joined(pair.source)).value());
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return hashes[a] < hashes[b]; });
  order.resize(limit);
  std::sort(order.begin(), order.end());
  std::vector<AlignedPair> kept;
  for (auto i : order) kept.push_back(std::move(pairs[i]));
  corpus.beyond_limit = pairs.size() - limit;
  pairs = std::move(kept);
}

}  // namespace

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

TranslationCorpus read_translation_corpus(const Settings& settings, Key key) {
  auto corpus = read(settings, key);
  select(corpus, settings, key / "limit");
  if (corpus.pairs.empty())
    throw InputError(fmt::format(
        "{}: nothing left: of {} pairs, {} are shorter than min_length={} or longer than "
        "max_length={}; raise max_length",
        corpus.origin, corpus.read, corpus.wrong_length, settings.integer("min_length"), settings.integer("max_length")));
  return corpus;
}

}  // namespace hardgrad
