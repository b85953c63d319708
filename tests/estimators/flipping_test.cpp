// Estimators that flip one bit, against the papers' equations summed over every outcome, every flip and every pair.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/estimator/coupling/flipping.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::flipping_test {
using namespace measurement;
namespace {

using verification::Recurrent;

/// Bits with separate logits, and one number for each of their outcomes.
struct Table {
  std::vector<double> phi, p, f;  // p of a bit being 1; f [2^T], the first bit is the highest
  std::unique_ptr<Model<double>> model;
  explicit Table(const std::vector<double>& logits) : phi(logits) {
    model = model_of(fmt::format("bits[bits={},function=table,logit={}]", phi.size(), fmt::join(phi, ";")));
    for (double l : phi) p.push_back(1 / (1 + std::exp(-l)));
    for (std::size_t z = 0; z < (1u << phi.size()); ++z) {  // f is read from the model, with nearly certain bits
      auto logit = phi;
      for (std::size_t i = 0; i < phi.size(); ++i) logit[i] = bit(z, i) ? 200 : -200;
      const auto sure = model_of(fmt::format("bits[bits={},function=table,logit={}]", phi.size(), fmt::join(logit, ";")));
      f.push_back(exact_reference({}, *sure, one_example(), 1e6).value);
    }
  }
  int bit(std::size_t z, std::size_t i) const { return z >> (phi.size() - 1 - i) & 1; }
  std::size_t with(std::size_t z, std::size_t i, int value) const {
    const std::size_t place = std::size_t{1} << (phi.size() - 1 - i);
    return value ? z | place : z & ~place;
  }
  double of(std::size_t i, int value) const { return value ? p[i] : 1 - p[i]; }
  /// P(b_i = b and b~_i = c) of the pair [u > 1 - p], [u < p].
  double pair(std::size_t i, int b, int c) const {
    const double differ = std::min(p[i], 1 - p[i]);
    return b != c ? differ : b == (p[i] > 0.5) ? std::abs(2 * p[i] - 1) : 0;
  }
  /// Moments of g(b, b~, flip) [T].
  template <class G>
  Moments moments(G&& g) const {
    const std::size_t T = phi.size(), all = std::size_t{1} << T;
    Moments m;
    m.mean.resize(T);
    for (std::size_t b = 0; b < all; ++b)
      for (std::size_t c = 0; c < all; ++c)
        for (std::size_t flip = 0; flip < T; ++flip) {
          double weight = 1.0 / static_cast<double>(T);
          for (std::size_t i = 0; i < T; ++i) weight *= pair(i, bit(b, i), bit(c, i));
          const std::vector<double> value = g(b, c, flip);
          for (std::size_t i = 0; i < T; ++i) {
            m.mean[i] += weight * value[i];
            m.trace += weight * value[i] * value[i];
          }
        }
    for (double mean : m.mean) m.trace -= mean * mean;
    return m;
  }
  double flipped(std::size_t b, std::size_t i) const {
    return static_cast<double>(phi.size()) * p[i] * (1 - p[i]) * (f[with(b, i, 1)] - f[with(b, i, 0)]);
  }
  double disarm(std::size_t b, std::size_t c, std::size_t i) const {
    return (f[b] - f[c]) * (bit(b, i) - bit(c, i)) / (1 + std::exp(-std::abs(phi[i]))) / 2;
  }
  Moments found(const std::string& spec) const { return moments_of(spec, *model); }
};
const std::vector<std::vector<double>> logits = {{0.7}, {0.3, -0.8}, {0.2, -3.5, 2.0}, {-4.0, 5.0, -0.1}};

void same(const Moments& found, const Moments& expected) {
  CHECK(largest_difference(found.mean, expected.mean) < 1e-14);
  CHECK(found.trace == doctest::Approx(expected.trace).epsilon(1e-10));
}

TEST_CASE("flipping: bitflip has the moments of its equation, summed over outcomes and flips") {
  for (const auto& phi : logits) {
    const Table table(phi);
    same(table.found("bitflip"), table.moments([&](std::size_t b, std::size_t, std::size_t flip) {
      std::vector<double> g(phi.size());
      g[flip] = table.flipped(b, flip);
      return g;
    }));
    CHECK(table.found("bitflip[samples=3]").trace == doctest::Approx(table.found("bitflip").trace / 3).epsilon(1e-12));
  }
}

TEST_CASE("flipping: ugc has the moments of its equations, summed over pairs and flips") {
  int by_flip = 0, by_pair = 0;
  for (const auto& phi : logits) {
    const Table table(phi);
    const auto T = static_cast<double>(phi.size());
    const auto found = table.found("ugc");
    same(found, table.moments([&](std::size_t b, std::size_t c, std::size_t flip) {
      std::vector<double> g(phi.size());
      for (std::size_t i = 0; i < phi.size(); ++i) {
        const bool sure = 2 * T * std::min(table.p[i], 1 - table.p[i]) < 1;
        (sure ? by_flip : by_pair) += b == 0 && c == 0 && flip == 0;
        g[i] = !sure ? table.disarm(b, c, i) : i == flip ? table.flipped(b, i) : 0;
      }
      return g;
    }));
  }
  CHECK(by_flip == 5);
  CHECK(by_pair == 4);
}

TEST_CASE(
    "flipping: if losses add up, ugc has no more variance than disarm, and none on one bit, for other losses it may have "
    "more") {
  for (const auto* phi : {"0.7;-0.2;1", "-4;5;-0.1", "3;-2.5;6", "-1.6;-1.7;-1.5"}) {
    CAPTURE(phi);
    const auto model = model_of(fmt::format("bits[bits=3,t=0.3;0.6;0.1,logit={}]", phi));
    CHECK(variance_of("ugc", *model) <= variance_of("disarm", *model) * (1 + 1e-12));
  }
  const auto bit = model_of("bits[t=0.3,logit=0.4]");
  CHECK(variance_of("ugc", *bit) < 1e-30);
  const Table table({0.2, -3.5, 2.0});
  CHECK(table.found("ugc").trace > table.found("disarm").trace);
}

TEST_CASE("flipping: means are the gradient, with other choices present, ragged and dependent") {
  int visited = 0;
  for (bool feeding : {false, true})
    for (int columns : {1, 2}) {
      const Recurrent<double> model(feeding, Key(5), 2, 0, columns);
      const auto batch = columns == 1 ? Recurrent<double>::batch(2) : Recurrent<double>::batch(2).select({1});
      for (const std::string spec : {"bitflip", "bitflip[target=elbo]", "bitflip[target=elbo,kl=sampled]", "ugc",
                                     "ugc[target=elbo]", "ugc[target=elbo,kl=sampled]"}) {
        if (feeding && spec.substr(0, 3) == "ugc") continue;
        CAPTURE(feeding);
        CAPTURE(columns);
        CAPTURE(spec);
        CHECK(bias_of(spec, model, batch) < 1e-10);
        ++visited;
      }
    }
  CHECK(visited == 18);
  const Recurrent<double> feeding(true, Key(5), 2);
  CHECK_THROWS_WITH_AS(estimator_of("ugc", feeding), doctest::Contains("choices feed later ones"), UsageError);
}

TEST_CASE("flipping: two rows a sample, for any number of bits") {
  for (int bits : {1, 3, 40}) {
    const auto model = model_of(fmt::format("bits[bits={},t=0.3]", bits));
    for (const auto& [spec, rows] : {std::pair{"bitflip", 2}, {"bitflip[samples=5]", 10}, {"ugc", 3}}) {
      CHECK(Drawn(spec, *model).estimate.rows() == rows);
    }
  }
}

/// bitflip with one mistake.
enum class Mistake { none, not_weighted_by_their_number, sign_of_zeros };
class Wrong final : public FlippingEstimator<double> {
 public:
  explicit Wrong(Mistake mistake) : FlippingEstimator<double>(1, false), mistake_(mistake) {}

 private:
  double derivative(const FlippedBit& bit) const override {
    if (mistake_ == Mistake::not_weighted_by_their_number) return bit.by_flip() / bit.choices;
    return mistake_ == Mistake::sign_of_zeros && bit.option == 0 ? -bit.by_flip() : bit.by_flip();
  }
  Mistake mistake_;
};

TEST_CASE("flipping: wrong estimators are detected") {
  const Recurrent<double> model(true, Key(5), 2);
  const auto batch = Recurrent<double>::batch(2);
  CHECK(bias_of(Wrong(Mistake::none), model, batch) < 1e-10);
  for (auto mistake : {Mistake::not_weighted_by_their_number, Mistake::sign_of_zeros})
    CHECK(bias_of(Wrong(mistake), model, batch) > 1e-3);
}

}  // namespace
}  // namespace hardgrad::testing::flipping_test
