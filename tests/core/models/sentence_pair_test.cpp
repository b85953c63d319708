// Pairs of sentences: gradients, padding and other examples, relaxed and enumerated answers, and the published network computed
// explicitly.
#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::sentence_pair_test {
namespace {

const Dimensions dimensions{{"vocabulary", 6}, {"first_length", 3}, {"second_length", 2}, {"classes", 3}};

/// Three and two words, one and two, two and one; the first pair and the last share words.
Batch three_pairs() {
  Batch batch;
  batch.id = {2, 5, 6};
  batch.integers["first"] = shaped<int>({3, 3}, {2, 3, 4, 5, 0, 0, 3, 4, 0});
  batch.integers["first_length"] = shaped<int>({3}, {3, 1, 2});
  batch.integers["second"] = shaped<int>({3, 2}, {3, 5, 2, 4, 4, 0});
  batch.integers["second_length"] = shaped<int>({3}, {2, 2, 1});
  batch.integers["label"] = shaped<int>({3}, {2, 0, 1});
  return batch;
}

std::string spec(const std::string& attention, const std::string& more = "") {
  return "sentence_pair[width=2,window=2,attention=" + attention + more + "]";
}
// For each of a pair's five columns: tokens of the first sentence, then of the second; 0 for padding.
const std::vector<int> partners{1, 0, 1, 2, 0, /**/ 1, 0, 0, 0, 0, /**/ 0, 0, 1, 0, 0};
const std::vector<int> units{0, 1, 1, 0, 1, /**/ 1, 0, 1, 0, 0, /**/ 1, 0, 1, 0, 0};

struct Case {
  std::string spec;
  Options forced;
  std::string dependence;
  std::vector<double> outcomes;
};
std::vector<Case> cases() {
  return {{spec("bottom"), {partners}, "joint cost", {72, 2, 2}},  // 2 2 2 3 3 partners, one word of two, two of one
          {spec("top"), {units}, "joint cost", {32, 8, 8}},
          {spec("both"), {partners, units}, "sequential", {2304, 16, 16}},
          {spec("bottom", ",layers=2"), {partners, partners}, "sequential", {5184, 4, 4}}};
}

}  // namespace

TEST_CASE("sentence_pair: gradients, padding, copies of rows and all outcomes") {
  const auto cut = [](const Batch& all, int b) {  // to its length
    auto alone = all.select({b});
    for (const auto* side : {"first", "second"}) {
      auto& words = alone.integers.at(side);
      const auto length = static_cast<std::size_t>(alone.ints(std::string(side) + "_length").flat(0));
      words = shaped<int>({1, length}, {words.begin(), words.begin() + length});
    }
    return alone;
  };
  for (const auto& [spec, forced, dependence, outcomes] : cases())
    check_model({.spec = spec,
                 .dimensions = dimensions,
                 .batch = three_pairs(),
                 .forced = forced,
                 .columns = 5,
                 .dependence = dependence,
                 .outcomes = outcomes,
                 .alone = cut});
  auto none = lively(spec("none", ",layers=2"), dimensions);
  CHECK(none->structure().sites.empty());
  check_gradient("no attention", *none, three_pairs(), [] { return std::make_unique<ExpectedHandler<double>>(); });
}

TEST_CASE("sentence_pair: relaxed to its mean it equals the published network, word by word") {
  const auto model = lively(spec("both"), dimensions);
  const auto of = [&](const char* name) -> const Array<double>& { return model->parameters().find(name)->value; };
  const auto batch = three_pairs();
  ExpectedHandler<double> soft;
  const auto loss = losses(*model, batch, soft);
  using Vector = std::vector<double>;
  using Sentence = std::vector<Vector>;
  const auto match = [](const Vector& a, const Vector& b) { return 1 / (1 + std::hypot(a[0] - b[0], a[1] - b[1])); };
  for (int b = 0; b < 3; ++b) {
    std::array<Sentence, 2> x, input, f, next;
    for (int side = 0; side < 2; ++side)
      for (int i = 0; i < batch.ints(side ? "second_length" : "first_length")(b); ++i) {
        const auto row = row_of(of("embedding.weight"), row_of(batch.ints(side ? "second" : "first"), b)[i]);
        x[side].push_back({row[0], row[1]});
      }
    for (int side = 0; side < 2; ++side) {
      for (const auto& word : x[side]) {  // [x; sum_j A_ij P_j]
        input[side].push_back({word[0], word[1], 0, 0});
        for (std::size_t j = 0; j < x[!side].size(); ++j)
          for (int k = 0; k < 2; ++k)
            input[side].back()[2 + k] += match(word, x[!side][j]) * of("attention.place.weight")(j, k);
      }
      for (std::size_t u = 0; u < x[side].size() + 1; ++u) {
        f[side].push_back({of("block1.bias")(0), of("block1.bias")(1)});
        for (int k = 0; k < 2; ++k) {
          for (int o = 0; o < 2; ++o)  // the word before, the word itself
            if (u + o >= 1 && u + o - 1 < x[side].size())
              for (int c = 0; c < 4; ++c) f[side].back()[k] += of("block1.weight")(k, 4 * o + c) * input[side][u + o - 1][c];
          f[side].back()[k] = std::tanh(f[side].back()[k]);
        }
      }
    }
    for (int side = 0; side < 2; ++side)
      for (std::size_t i = 0; i < x[side].size(); ++i) {  // sum_u v_u f_u
        next[side].push_back({0, 0});
        for (std::size_t u = i; u < i + 2; ++u) {
          double v = 0;
          for (const auto& g : f[!side]) v += match(f[side][u], g);
          for (int k = 0; k < 2; ++k) next[side].back()[k] += v * f[side][u][k];
        }
      }
    Vector features;
    for (const auto& level : {x, next}) {
      std::array<Vector, 2> mean{Vector{0, 0}, Vector{0, 0}};
      for (int side = 0; side < 2; ++side)
        for (const auto& word : level[side])
          for (int k = 0; k < 2; ++k) mean[side][k] += word[k] / static_cast<double>(level[side].size());
      for (const auto& m : {mean[0], mean[1], Vector{mean[0][0] * mean[1][0], mean[0][1] * mean[1][1]}})
        features.insert(features.end(), m.begin(), m.end());
    }
    double all = 0, own = 0;
    for (int c = 0; c < 3; ++c) {
      double e = of("classifier.bias")(c);
      for (std::size_t k = 0; k < features.size(); ++k) e += of("classifier.weight")(c, k) * features[k];
      all += std::exp(e);
      if (c == batch.ints("label")(b)) own = e;
    }
    CHECK(loss[b] == doctest::Approx(std::log(all) - own).epsilon(1e-12));
  }
}

}  // namespace hardgrad::testing::sentence_pair_test
