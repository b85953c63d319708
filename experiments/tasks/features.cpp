// Normal numbers with a label that depends on a few of them, the planted features: can a network find which?
//
//   x_1..x_n ~ N(0, 1),   P(label = 1 | x) = e / (1 + e)
//   xor:          e = exp(x_1 x_2)
//   orange_skin:  e = exp(x_1^2 + x_2^2 + x_3^2 + x_4^2 - 4)
//   additive:     e = exp(-100 sin(2 x_1) + 2 |x_2| + x_3 + exp(-x_4))
//   switch:       x_10 ~ N(3, 1) or N(-3, 1), each half of the time; from N(3, 1) orange_skin of x_1..x_4, otherwise additive
//                 of x_5..x_8. So x_10 and four others are planted, which four depends on the example.
//   regimes:      e = exp(5 x_j), j = 3 + 2 [x_1 > 0] + [x_2 > 0]: one of four features decides, and two others say which
//
// Chen, Song, Wainwright & Jordan 2018, Learning to explain (L2X): an information-theoretic perspective on model
// interpretation, sec. 4.1, with n = 10; regimes is an addition. `sure=true` takes the more probable label instead of a draw.
#include <fmt/format.h>

#include <cmath>

#include "core/random/randomness.hpp"
#include "experiments/tasks/on_demand.hpp"
#include "experiments/tasks/options_used.hpp"

namespace hardgrad::tasks::features {
namespace {

enum class Kind { exclusive_or, orange_skin, additive, switched, regimes };
constexpr Named<Kind> kinds[] = {{"xor", Kind::exclusive_or},
                                 {"orange_skin", Kind::orange_skin},
                                 {"additive", Kind::additive},
                                 {"switch", Kind::switched},
                                 {"regimes", Kind::regimes}};

struct Config {
  Kind kind = Kind::exclusive_or;
  int features = 10;
  bool sure = false;
  SplitSizes sizes{.examples = 100000, .heldout = 1000, .test = 1000};

  void declare(Fields& field) {
    field(kind, "kind", kinds, "how the label depends on them");
    field(features, "features", 2, 10000, "numbers n of an example");
    field(sure, "sure", "the more probable label instead of a draw");
    sizes.declare(field, "examples");
  }
};

/// Fields: reals "x" [B, n]; integers "label" [B] and "planted" [B, n], 1 for the features that the label depends on.
class Features final : public OnDemand {
 public:
  Features(const Config& config, Key key)
      : OnDemand(config.sizes), key_(key / "features"), kind_(config.kind), sure_(config.sure), features_(config.features) {
    const std::size_t least = kind_ == Kind::exclusive_or ? 2 : kind_ == Kind::switched ? 10 : kind_ == Kind::regimes ? 6 : 4;
    if (features_ < least)
      throw UsageError(
          fmt::format("features: kind={} needs at least {} features, got {}", name_of(kind_, kinds), least, features_));
  }

  Dimensions dimensions() const override {
    return {{"features", static_cast<int>(features_)}, {"feature_width", 1}, {"labels", 2}};
  }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    const auto B = indices.size();
    Batch batch;
    Array<double> x = zeros<double>({B, features_});
    Array<int> label = zeros<int>({B}), planted = zeros<int>({B, features_});
    for (std::size_t b = 0; b < B; ++b) {
      batch.id.push_back(id_of(split, indices[b]));
      label(b) = set(batch.id[b], row_of(x, b), row_of(planted, b));
    }
    batch.reals = {{"x", std::move(x)}};
    batch.integers = {{"label", std::move(label)}, {"planted", std::move(planted)}};
    return batch;
  }

  std::vector<Metric> metrics() const override { return planted_metrics(); }
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    score_planted(batch, seen, metrics);
  }

 private:
  int set(std::uint32_t id, std::span<double> x, std::span<int> planted) const {
    KeyedRandomness random(key_);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = random.normal({.example = id, .index = static_cast<std::uint32_t>(2 * i)});
    const auto plant = [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) planted[i] = 1;
      return x.subspan(first, end - first);
    };
    const auto skin = [](std::span<double> z) { return z[0] * z[0] + z[1] * z[1] + z[2] * z[2] + z[3] * z[3] - 4; };
    const auto sum = [](std::span<double> z) {
      return -100 * std::sin(2 * z[0]) + 2 * std::abs(z[1]) + z[2] + std::exp(-z[3]);
    };
    double log_odds = 0;
    if (kind_ == Kind::exclusive_or) {
      const auto z = plant(0, 2);
      log_odds = z[0] * z[1];
    } else if (kind_ == Kind::switched) {
      const bool first = random.uniform({.example = id, .step = 1}) < 0.5;
      plant(9, 10)[0] += first ? 3 : -3;
      log_odds = first ? skin(plant(0, 4)) : sum(plant(4, 8));
    } else if (kind_ == Kind::regimes) {
      const std::size_t j = 2 + 2 * (x[0] > 0) + (x[1] > 0);
      plant(0, 2);
      log_odds = 5 * plant(j, j + 1)[0];
    } else {
      log_odds = kind_ == Kind::additive ? sum(plant(0, 4)) : skin(plant(0, 4));
    }
    const double limit = sure_ ? 0.5 : random.uniform({.example = id, .step = 2});
    return limit < 1 / (1 + std::exp(-log_odds));
  }

  Key key_;
  Kind kind_;
  bool sure_;
  std::size_t features_;
};

const TaskEntry entry = {
    .name = "features",
    .summary = "numbers with a label that depends on a few of them",
    .data = "generated",
    .default_model = "selector",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Features, entry)

}  // namespace
}  // namespace hardgrad::tasks::features
