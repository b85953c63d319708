// Parsing as translation of sentences into rows of brackets: generated with ambiguous attachment, or trees from a file.
#include <fmt/format.h>

#include "core/support/error.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/sequence_task.hpp"
#include "experiments/tasks/text.hpp"
#include "experiments/tasks/trees.hpp"

namespace hardgrad::tasks::parse {
namespace {

struct Config {
  std::string path;
  int examples = 2000, words = 8, phrases = 2;
  double ambiguity = 0;
  std::size_t vocabulary = 10000, max_length = 40;
  SplitShares shares{.heldout = 0.05, .test = 0.05};
  bool lower_case = true;

  void declare(Fields& field) {
    field.file(path, "path", "trees like (S (NP (DT the) (NN dog)) (VP (VBZ barks))); empty: generated");
    field(examples, "examples", 1, 1e7, "sentences to generate");
    field(words, "words", 1, 1e5, "number of nouns, of verbs and of adjectives (generated)");
    field(phrases, "phrases", 0, 20, "most prepositional phrases after the verb (generated)");
    field(ambiguity, "ambiguity", 0, 1, "share of the ambiguous phrases whose attachment contradicts their words (generated)");
    field(vocabulary, "vocabulary", 5, 1e6, "entries per side, including 4 special ones; rarer words are unknown");
    field(max_length, "max_length", 1, 1000, "most words of a sentence");
    shares.declare(field, "share of sentences held out for validation", "share of sentences held out for the test");
    field(lower_case, "lower_case", "fold words to lower case");
  }
};

class Parsing final : public SequenceTask {
 public:
  Parsing(const Config& config, Key key, const Parsing* trained) {
    require_shares("parse", config.shares);
    const auto path = find_input(config.path);
    std::vector<SequencePair> pairs;
    if (path.empty()) {
      const TreeGrammar grammar{config.words, config.phrases, config.ambiguity};
      for (int i = 0; i < config.examples; ++i)
        pairs.push_back(grammar.generate(key / "sentence" / static_cast<std::uint64_t>(i)));
    } else {
      provenance_ = path;
      for (auto& [words, row] : read_bracketed_trees(path)) {
        if (config.lower_case)
          for (auto& word : words) word = lower_case(word);
        pairs.push_back({std::move(words), std::move(row)});
      }
    }
    const auto all = pairs.size(), longest = config.max_length;
    const auto too_long = std::erase_if(pairs, [&](const SequencePair& pair) { return pair.source.size() > longest; });
    if (pairs.empty())
      throw InputError(
          fmt::format("{}: nothing left: all {} sentences are longer than max_length={}; raise it", provenance_, all, longest));
    std::vector<std::string> groups;
    groups.reserve(pairs.size());
    for (const auto& pair : pairs) groups.push_back(lower_case(joined(pair.source)));  // splits do not depend on lower_case
    const auto splits = split_by_group(groups, config.shares.heldout, config.shares.test, key / "split");
    take(std::move(pairs), splits, config.vocabulary, key / "order",
         "no tree is left to train on; give more trees, or heldout=0,test=0", trained);
    provenance_ +=
        fmt::format(": {} trees read; left out: {} of more than {} words; kept: {}", all, too_long, longest, counts());
  }

 protected:
  std::vector<Metric> own_metrics() const override {
    return {{.name = "bracket_f1", .unit = "1"}, {.name = "well_formed", .unit = "1"}};
  }
  /// F1 over all labelled brackets, 2 right / (wanted + given). If the answer is not a tree over the sentence, all its brackets
  /// are wrong.
  void judge(std::uint32_t id, std::span<const int> answer, std::vector<Metric>& own) const override {
    const auto row = symbols(answer), wanted_row = symbols(reference(id));
    const auto given = brackets_of(row, source_words(id)), wanted = brackets_of(wanted_row, source_words(id));
    std::size_t right = 0;
    if (given && wanted) {
      auto left = *wanted;
      for (const auto& bracket : *given)
        if (const auto it = left.find(bracket); it != left.end()) {
          left.erase(it);
          ++right;
        }
    }
    const auto count = [](const std::vector<std::string>& all) { return std::count_if(all.begin(), all.end(), opens); };
    own[0].add(2 * static_cast<double>(right), static_cast<double>(count(row) + count(wanted_row)));
    own[1].add(given.has_value());
  }

 private:
  std::vector<std::string> symbols(std::span<const int> numbers) const {
    std::vector<std::string> row;
    for (int number : numbers) row.push_back(target_word(number));
    return row;
  }
};

const TaskEntry entry = {
    .name = "parse",
    .summary = "parsing of sentences into trees, written as rows of brackets, with attention to the words",
    .data = "generated, with attachment decided by the words, or trees in the Penn Treebank's brackets (plain or .gz)",
    .default_model = "translator",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Parsing, entry)

}  // namespace
}  // namespace hardgrad::tasks::parse
