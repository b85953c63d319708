// Short reviews of a small vocabulary with a verdict that depends on a few planted words: can a network tell which?
//
//   n uniform on `shortest`..`longest`;  a quarter of the n words, rounded up, at random places, are sentiment words; the others
//   are neutral. A sentiment word has a strength s of -2, -1, 1 or 2;  P(label = 1) = 1 / (1 + exp(-2 sum s))
//
// As L2X's reviews of films (Chen et al. 2018, sec. 4.2), but the words that matter are known. `sure=true` takes the more probable
// label instead of a draw, 1 where both are.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/on_demand.hpp"
#include "experiments/tasks/options_used.hpp"

namespace hardgrad::tasks::reviews {
namespace {

constexpr std::array sentiment = {"awful", "dreadful", "poor", "dull", "decent", "pleasant", "superb", "brilliant"};
constexpr std::array strength = {-2, -2, -1, -1, 1, 1, 2, 2};
constexpr std::array neutral = {"the",   "a",      "film",  "scene", "actor",  "plot",  "is",    "was",
                                "we",    "they",   "saw",   "in",    "of",     "and",   "with",  "music",
                                "story", "camera", "later", "first", "second", "there", "about", "evening"};
constexpr int words = sentiment.size() + neutral.size();

struct Config {
  int shortest = 4;
  std::size_t longest = 16;
  bool sure = false;
  SplitSizes sizes{.examples = 100000, .heldout = 1000, .test = 1000};

  void declare(Fields& field) {
    field(shortest, "shortest", 1, 10000, "words of the shortest review");
    field(longest, "longest", 1, 10000, "words of the longest review");
    field(sure, "sure", "the more probable label instead of a draw");
    sizes.declare(field, "examples");
  }
};

/// Fields, for S = `longest`: reals "x" [B, S words], the words one-hot, 0 beyond a review's; integers "word" [B, S], -1 beyond;
/// "length", "label" [B]; "planted" [B, S], 1 for sentiment words.
class Reviews final : public OnDemand {
 public:
  Reviews(const Config& config, Key key)
      : OnDemand(config.sizes),
        key_(key / "reviews"),
        sure_(config.sure),
        shortest_(config.shortest),
        longest_(config.longest) {
    if (static_cast<std::size_t>(shortest_) > longest_)
      throw UsageError(fmt::format("reviews: shortest={} is more than longest={}: no length is possible", shortest_, longest_));
  }

  Dimensions dimensions() const override {
    return {{"features", static_cast<int>(longest_)}, {"feature_width", words}, {"labels", 2}};
  }
  std::string word(const std::string& field, int number) const override {
    if (field != "word" || number < 0) return {};
    const auto i = static_cast<std::size_t>(number);
    return i < sentiment.size() ? sentiment.at(i) : neutral.at(i - sentiment.size());
  }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    const auto B = indices.size();
    Batch batch;
    Array<double> x = zeros<double>({B, longest_ * words});
    Array<int> word = full<int>({B, longest_}, -1), length = zeros<int>({B}), label = zeros<int>({B}),
               planted = zeros<int>({B, longest_});
    for (std::size_t b = 0; b < B; ++b) {
      batch.id.push_back(id_of(split, indices[b]));
      Draws draws(key_, batch.id[b]);
      const auto n = static_cast<std::size_t>(length(b) = shortest_ + draws.below(static_cast<int>(longest_) - shortest_ + 1));
      plant(draws, row_of(planted, b).first(n));
      int total = 0;
      for (std::size_t i = 0; i < n; ++i) {
        int& of = word(b, i);
        if (planted(b, i) == 1)
          total += strength.at(static_cast<std::size_t>(of = draws.below(static_cast<int>(sentiment.size()))));
        else
          of = static_cast<int>(sentiment.size()) + draws.below(static_cast<int>(neutral.size()));
        x(b, i * words + static_cast<std::size_t>(of)) = 1;
      }
      label(b) = (sure_ ? 0.5 : draws.between(0, 1)) <= 1 / (1 + std::exp(-2.0 * total));
    }
    batch.reals = {{"x", std::move(x)}};
    batch.integers = {
        {"word", std::move(word)}, {"length", std::move(length)}, {"label", std::move(label)}, {"planted", std::move(planted)}};
    return batch;
  }

  std::vector<Metric> metrics() const override { return planted_metrics(); }
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    score_planted(batch, seen, metrics);
  }

 private:
  /// A quarter of the places, by a shuffle.
  static void plant(Draws& draws, std::span<int> planted) {
    std::vector<std::size_t> place(planted.size());
    std::iota(place.begin(), place.end(), 0);
    for (std::size_t i = 0; i < (planted.size() + 3) / 4; ++i) {
      std::swap(place[i], place[i + draws.below(place.size() - i)]);
      planted[place[i]] = 1;
    }
  }

  Key key_;
  bool sure_;
  int shortest_;
  std::size_t longest_;
};

const TaskEntry entry = {
    .name = "reviews",
    .summary = "short reviews with a verdict that depends on planted words",
    .data = "generated",
    .default_model = "selector[maps=shared,share=0.25]",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Reviews, entry)

}  // namespace
}  // namespace hardgrad::tasks::reviews
