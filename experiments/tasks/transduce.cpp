// Transduction of letters into sounds, or of lemmas into inflected forms: generated words, CMUdict, or SIGMORPHON's files.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include "core/support/error.hpp"
#include "core/support/text_metrics.hpp"
#include "experiments/tasks/generated_pairs.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/loaders/pairs.hpp"
#include "experiments/tasks/sequence_task.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks::transduce {
namespace {

enum class Data { generated, cmudict, inflection, pronunciation };
constexpr Named<Data> all_data[] = {{"generated", Data::generated},
                                    {"cmudict", Data::cmudict},
                                    {"inflection", Data::inflection},
                                    {"pronunciation", Data::pronunciation}};

struct Config {
  Data data = Data::generated;
  std::string path, dev_path, test_path;
  int examples = 2000, syllables = 3;
  std::size_t max_length = 40, limit = 0;
  SplitShares shares{.heldout = 0.05, .test = 0.05};
  bool variants = true, stress = false;

  void declare(Fields& field) {
    field(data, "data", all_data,
          "format: lines of lemma, form and features (inflection), or of word and sounds (pronunciation)");
    field.file(path, "path", "the data file");
    field.file(dev_path, "dev_path", "a file of the development split, used whole; replaces the share heldout");
    field.file(test_path, "test_path", "a file of the test split, used whole; replaces the share test");
    field(examples, "examples", 1, 1e7, "words to generate (data=generated)");
    field(syllables, "syllables", 1, 8, "most syllables of a word (data=generated)");
    field(max_length, "max_length", 1, 1000, "most symbols of a word and of its answer");
    field(limit, "limit", 0, 1e8, "most words, drawn by a hash; 0: all");
    shares.declare(field, "share held out for validation, of groups of words with a common answer (data=generated: of words)",
                   "share held out for the test, of the same groups");
    field(variants, "variants", "also read further pronunciations, word(2) (data=cmudict)");
    field(stress, "stress", "keep the vowels' stress digits (data=cmudict)");
  }
};

/// Training uses all answers (pronunciations) of a word. A held-out word occurs once and is scored against the closest of its
/// answers, as is usual on CMUdict.
class Transduction final : public SequenceTask {
 public:
  Transduction(const Config& config, Key key, const Transduction* trained) {
    require_shares("transduce", config.shares);
    auto pairs = read(config, key);
    auto all = pairs.size();
    const auto longest = config.max_length;
    const auto too_long = std::erase_if(
        pairs, [&](const SequencePair& pair) { return pair.source.size() > longest || pair.target.size() > longest; });
    const auto beyond = cut(pairs, config.limit, key / "limit");
    if (pairs.empty())
      throw InputError(fmt::format("{}: nothing left: {} of {} words are longer than max_length={}; raise it", provenance_,
                                   too_long, all, longest));
    Sides words, answers;
    for (const auto& pair : pairs) {
      words.push_back(joined(pair.source));
      answers.push_back(joined(pair.target));
    }
    // A quarter of CMUdict's words sound like another one, and many inflected forms serve several cases. Groups keep these
    // together.
    auto groups = config.data == Data::generated ? words : groups_by_either(words, answers);
    auto splits = split_by_group(groups, share_without(config.dev_path, config.shares.heldout),
                                 share_without(config.test_path, config.shares.test), key / "split");
    for (const auto& [split, name, path] :
         {std::tuple{Split::heldout, "dev", config.dev_path}, {Split::test, "test", config.test_path}}) {
      if (path.empty()) continue;
      provenance_ += fmt::format(", {}: {}", name, find_input(path));
      for (auto& pair : read_file(config, find_input(path))) {
        words.push_back(joined(pair.source));
        answers.push_back(joined(pair.target));
        groups.push_back("given " + words.back());
        splits.push_back(split);
        pairs.push_back(std::move(pair));
        ++all;
      }
    }
    // The answers of a word in its split: files of their own may share words.
    std::vector<std::string> names;
    for (std::size_t i = 0; i < words.size(); ++i) {
      names.push_back(to_string(splits[i]) + " " + words[i]);
      answers_[names.back()].push_back(static_cast<std::uint32_t>(i));
    }
    take(std::move(pairs), splits, 0, key / "order", "no word is left to train on; give more words, or heldout=0,test=0",
         trained);
    same_.resize(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) same_[i] = &answers_.at(names[i]);
    for (const auto split : {Split::heldout, Split::test})
      std::erase_if(of(split), [&](int i) { return same_[i]->front() != static_cast<std::uint32_t>(i); });
    provenance_ +=
        fmt::format(": {} words and answers read; left out: {} of more than {} symbols, {} beyond the limit; kept: {}; {}", all,
                    too_long, longest, beyond, counts(), overlap(words, answers, groups, splits));
  }

 protected:
  std::vector<Metric> own_metrics() const override {
    return {{.name = "symbol_error_rate", .unit = "1", .higher_is_better = false, .share = true},
            {.name = "word_error_rate", .unit = "1", .higher_is_better = false, .share = true}};
  }
  /// symbol_error_rate: errors in phonemes or letters, relative to the length of the closest answer.
  void judge(std::uint32_t id, std::span<const int> answer, std::vector<Metric>& own) const override {
    std::size_t least = static_cast<std::size_t>(-1), length = 0;
    for (auto other : *same_[id])
      if (const auto errors = edit_distance(answer, reference(other)); errors < least) {
        least = errors;
        length = reference(other).size();
      }
    own[0].add(static_cast<double>(least), static_cast<double>(length));
    own[1].add(least > 0);
  }

 private:
  std::vector<SequencePair> read(const Config& config, Key key) {
    const auto path = find_input(config.path);
    for (const auto& [name, file] :
         {std::pair{"path", config.path}, {"dev_path", config.dev_path}, {"test_path", config.test_path}})
      if (config.data == Data::generated && !file.empty())
        throw UsageError(fmt::format(
            "transduce: {} is given, but data=generated; give its format: data=cmudict, inflection or pronunciation", name));
    if (config.data != Data::generated && path.empty())
      throw UsageError(fmt::format("transduce: data={} needs path=FILE", name_of(config.data, all_data)));
    std::vector<SequencePair> pairs;
    if (config.data == Data::generated) {
      const Spelling spelling{config.syllables};
      for (int i = 0; i < config.examples; ++i)
        pairs.push_back(spelling.generate(key / "word" / static_cast<std::uint64_t>(i)));
      return pairs;
    }
    provenance_ = path;
    return read_file(config, path);
  }

  static std::vector<SequencePair> read_file(const Config& config, const std::string& path) {
    std::vector<SequencePair> pairs;
    if (config.data == Data::cmudict) {
      for (auto& entry : read_cmudict(path)) {
        if (entry.variant > 1 && !config.variants) continue;
        if (!config.stress)
          for (auto& phoneme : entry.phonemes)
            if (std::isdigit(static_cast<unsigned char>(phoneme.back()))) phoneme.pop_back();
        pairs.push_back({characters(lower_case(entry.word)), std::move(entry.phonemes)});
      }
    } else if (config.data == Data::inflection) {
      for (auto& [lemma, form, features] : read_inflections(path)) {
        pairs.push_back({characters(lemma), characters(form)});
        for (const auto& feature : features) pairs.back().source.push_back("<" + feature + ">");  // distinct from all letters
      }
    } else {
      for (auto& [word, sounds] : read_transcriptions(path)) pairs.push_back({characters(word), std::move(sounds)});
    }
    return pairs;
  }

  /// Keeps the pairs of the `limit` words with the lowest hashes; returns the number of dropped pairs.
  static std::size_t cut(std::vector<SequencePair>& pairs, std::size_t limit, Key key) {
    if (limit == 0) return 0;
    std::map<std::string, std::uint64_t> hash;
    for (const auto& pair : pairs) {
      const auto name = joined(pair.source);
      hash.try_emplace(name, (key / name).value());
    }
    if (hash.size() <= limit) return 0;
    std::vector<std::uint64_t> all;
    all.reserve(hash.size());
    for (const auto& [name, value] : hash) all.push_back(value);
    std::sort(all.begin(), all.end());
    return std::erase_if(pairs, [&](const SequencePair& pair) { return hash.at(joined(pair.source)) >= all[limit]; });
  }

  std::map<std::string, std::vector<std::uint32_t>> answers_;  // the examples of each split and word
  std::vector<const std::vector<std::uint32_t>*> same_;        // the same, by example
};

const TaskEntry entry = {
    .name = "transduce",
    .summary = "transduction of letters into sounds, or of lemmas into inflected forms, with attention to the letters",
    .data = "generated, CMUdict, or SIGMORPHON's files of inflections or pronunciations (all plain or .gz)",
    .default_model = "translator",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Transduction, entry)

}  // namespace
}  // namespace hardgrad::tasks::transduce
