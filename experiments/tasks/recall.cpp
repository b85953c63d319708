// Associative recall with several queries: pairs of a key and a value, then keys again, whose values are the labels.
//
//   tokens   k_1 v_1 k_2 v_2 .. k_n v_n _ _ k_2 _ k_1 ..      n = pairs; _ is blank
//   labels   -   -   -   -      -   -   - - v_2 - v_1         none elsewhere
//
// Keys and values are different among themselves, drawn from vocabulary / 2 each: tokens 0 .. vocabulary / 2 - 1 are keys, the
// others values, whose labels count from 0; the blank is token `vocabulary`. After the pairs there are length - 2 pairs places.
// Queries are at some of these, drawn one after the other without replacement: place g = 1, 2, .. with probability in
// proportion to g^(power - 1). They ask for different pairs, in random order.
// joined=true: a pair is one token, vocabulary + 1 + k (vocabulary / 2) + v, so that one layer of attention is enough.
//
// Arora et al. 2023, Zoology: Measuring and improving recall in efficient language models (MQAR): with 8192 words, length 64 to
// 512, 4 to 64 pairs and power 0.01. Departures: their blanks may be random words; every second place is for an answer, and is
// blank; and they ask for all pairs.
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/token_labels.hpp"

namespace hardgrad::tasks::recall {
namespace {

struct Config {
  int pairs = 4, queries = 2, length = 16, vocabulary = 32;
  double power = 1;
  bool joined = false;
  SplitSizes sizes{.examples = 100000, .heldout = 500, .test = 500};

  void declare(Fields& field) {
    field(pairs, "pairs", 1, 10000, "pairs of a key and a value");
    field(queries, "queries", 1, 10000, "keys that are asked for");
    field(length, "length", 2, 100000, "tokens of a sequence");
    field(vocabulary, "vocabulary", 2, 100000, "keys and values together, half of each");
    field(power, "power", 0, 100, "exponent of the places of queries, plus 1; 1: all places alike, less: soon after the pairs")
        .above();
    field(joined, "joined", "a pair is one token");
    sizes.declare(field, "sequences");
  }
};

class Recall final : public TokenLabels {
 public:
  Recall(const Config& config, Key key) : TokenLabels(config.sizes), key_(key / "recall"), config_(config) {
    const auto& [pairs, queries, length, vocabulary, power, joined, sizes] = config;
    if (vocabulary % 2 != 0)
      throw UsageError(fmt::format("recall: half of the vocabulary are keys: give an even number, not {}", vocabulary));
    if (pairs > values())
      throw UsageError(fmt::format("recall: {} pairs have different keys, but vocabulary={} has {}: give at least {}", pairs,
                                   vocabulary, values(), 2 * pairs));
    if (queries > pairs) throw UsageError(fmt::format("recall: queries={} is more than the {} pairs", queries, pairs));
    if (shown() + queries > length)
      throw UsageError(fmt::format("recall: {} pairs and {} queries have {} tokens: give length={} or more, not {}", pairs,
                                   queries, shown() + queries, shown() + queries, length));
    if (joined && static_cast<double>(values()) * values() > 1e6)
      throw UsageError("recall: joined=true has a token for every pair of a key and a value: give a smaller vocabulary");
  }
  Dimensions dimensions() const override {
    return {{"tokens", config_.vocabulary + 1 + (config_.joined ? values() * values() : 0)},
            {"positions", config_.length},
            {"labels", values()}};
  }
  std::string word(const std::string& field, int number) const override {
    if (number < 0) return {};
    if (field == "label") return fmt::format("v{}", number);
    if (field != "token") return {};
    if (number == config_.vocabulary) return "_";
    if (number > config_.vocabulary) {
      const int pair = number - config_.vocabulary - 1;
      return fmt::format("k{}v{}", pair / values(), pair % values());
    }
    return number < values() ? fmt::format("k{}", number) : fmt::format("v{}", number - values());
  }

 protected:
  TokenSequence sequence(std::uint32_t id) const override {
    Draws draw(key_, id);
    const int n = config_.pairs, last = config_.length - shown();
    const auto k = drawn(n, draw), v = drawn(n, draw);
    TokenSequence made;
    for (int i = 0; i < n; ++i) {
      if (config_.joined) {
        made.add(config_.vocabulary + 1 + k[i] * values() + v[i]);
      } else {
        made.add(k[i]);
        made.add(values() + v[i]);
      }
    }
    std::vector<int> asked(last, -1);
    std::vector<double> weight(last);
    for (int g = 0; g < last; ++g) weight[g] = std::pow((g + 1.0) / last, config_.power - 1);
    const auto order = chosen(n, config_.queries, draw);
    for (const int pair : order) asked[place(weight, draw)] = pair;
    for (const int pair : asked) pair < 0 ? made.add(config_.vocabulary) : made.add(k[pair], v[pair]);
    return made;
  }

 private:
  int values() const { return config_.vocabulary / 2; }
  int shown() const { return (config_.joined ? 1 : 2) * config_.pairs; }
  std::vector<int> drawn(int count, Draws& draw) const { return chosen(values(), count, draw); }
  /// `count` different numbers below n, in random order.
  static std::vector<int> chosen(int n, int count, Draws& draw) {
    std::vector<int> all(n);
    std::iota(all.begin(), all.end(), 0);
    for (int i = 0; i < count; ++i) std::swap(all[i], all[i + draw.below(n - i)]);
    all.resize(count);
    return all;
  }
  /// A place in proportion to its weight, which becomes 0.
  static int place(std::vector<double>& weight, Draws& draw) {
    double left = draw.between(0, std::accumulate(weight.begin(), weight.end(), 0.0));
    int found = -1;
    for (std::size_t g = 0; g < weight.size(); ++g) {
      if (weight[g] <= 0) continue;
      found = static_cast<int>(g);
      if ((left -= weight[g]) < 0) break;
    }
    weight[found] = 0;
    return found;
  }

  Key key_;
  Config config_;
};

const TaskEntry entry = {
    .name = "recall",
    .summary = "pairs of keys and values, then keys whose values are asked for",
    .data = "generated",
    .default_model = "transformer",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Recall, entry)

}  // namespace
}  // namespace hardgrad::tasks::recall
