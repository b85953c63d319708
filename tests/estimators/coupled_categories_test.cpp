// Coupled categories: copulas, swaps, sticks and trees.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/estimator/coupling/antithetic_bits.hpp"
#include "core/estimator/coupling/dirichlet.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/coupling.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::coupled_categories_test {
using namespace measurement;
namespace {

using verification::Recurrent;

const std::vector<std::string> exact_ones = {"carms[samples=2]",
                                             "carms[samples=3]",
                                             "carms[samples=2,reward_to_go=true]",
                                             "disarm_tree",
                                             "disarm_tree[samples=4]",
                                             "disarm_tree[reward_to_go=true]",
                                             "disarm_stick",
                                             "disarm_stick[samples=4,order=ascending]",
                                             "disarm_stick[order=descending,reward_to_go=true]",
                                             "disarm_iw",
                                             "disarm_iw[samples=4]",
                                             "disarm_iw[reward_to_go=true]"};
bool has_many_outcomes(const std::string& spec) {
  return spec.find("samples=3") != std::string::npos || spec.find("samples=4") != std::string::npos;
}

TEST_CASE("coupled categories have the gradient of the expected loss as mean, dependent and independent choices") {
  for (const auto& spec : exact_ones) {
    CAPTURE(spec);
    for (bool feeding : {false, true}) {
      CAPTURE(feeding);
      Recurrent<double> model(feeding);
      CHECK(bias_of(spec, model, affordable(Recurrent<double>::batch(), has_many_outcomes(spec))) < 1e-10);
    }
    for (const auto* toy : {linear_bits, "bits[bits=2,options=3,function=table,logit=0.9;-0.1;0.4]",
                            "bits[options=5,function=linear,logit=0.2;-2;0.4;1;0]", "bits[options=4,logit=-3;0.1;0.4;1]"}) {
      CAPTURE(toy);
      const auto model = model_of(toy);
      CHECK(bias_of(spec, *model) < 1e-10);
    }
  }
}

TEST_CASE("very rare categories have an accurate gradient") {
  int compared = 0;
  for (const std::string spec :
       {"carms[samples=2]", "carms[samples=3]", "carms", "carms[samples=5]", "disarm_tree", "disarm_stick", "disarm_iw"})
    for (const std::string logits : {"10", "-10", "30", "-30", "300", "-300", "0;20;-30", "-300;5;0", "4;0;40"}) {
      CAPTURE(spec);
      CAPTURE(logits);
      const bool three = logits.find(';') != std::string::npos;
      const auto model = model_of(fmt::format("bits[options={},t=0.3,logit={}]", three ? 3 : 2, logits));
      const auto truth = exact_reference(Target(), *model, one_example(), 1e6);
      const auto mean = exact_moments(*estimator_of(spec, *model), *model, one_example(), truth.of_example, 1e6).mean;
      for (std::size_t i = 0; i < mean.size(); ++i)
        CHECK(std::abs(mean[i] - truth.gradient[i]) <= 1e-11 * std::abs(truth.gradient[i]));
      ++compared;
    }
  CHECK(compared == 7 * 9);
}

TEST_CASE("disarm_iw weights a pair by the distribution of sequentially broken sticks, and equals disarm on bits") {
  for (const auto& logits : {std::vector{0.2, -1.5, 0.4, 1.0}, {2.0, -3.0, 1.0, -0.5}, {0.0, 0.1, -0.1, 0.05}}) {
    std::vector<double> p;
    double all = 0;
    for (double l : logits) p.push_back(std::exp(l));
    for (double x : p) all += x;
    for (double& x : p) x /= all;
    std::vector<std::size_t> order = {0, 1, 2, 3};
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return p[a] < p[b]; });
    // Both members go through the sticks; each stops at one with its share of the rest, by antithetic bits.
    std::vector<double> together(16);
    const std::function<void(std::size_t, double)> walk = [&](std::size_t at, double weight) {
      if (at == 3) {
        together[order[3] * 5] += weight;
        return;
      }
      double left = 0;
      for (std::size_t l = at; l < 4; ++l) left += p[order[l]];
      const double stop = p[order[at]] / left, differ = std::min(stop, 1 - stop);
      CHECK(stop <= 0.5);
      walk(at + 1, weight * (1 - 2 * differ));
      for (std::size_t l = at + 1; l < 4; ++l) {
        const double other = weight * differ * p[order[l]] / (left - p[order[at]]);
        together[order[at] * 4 + order[l]] += other;
        together[order[l] * 4 + order[at]] += other;
      }
    };
    walk(0, 1);
    const auto model = model_of(fmt::format("bits[options=4,t=0.3,logit={}]", fmt::join(logits, ";")));
    std::vector<double> mean(4), square(4);
    for (std::size_t z = 0; z < 4; ++z)
      for (std::size_t y = 0; y < 4; ++y) {
        if (z == y) continue;
        const auto f = [](std::size_t i) { return std::pow(static_cast<double>(i) / 3 - 0.3, 2); };
        const double g = (f(z) - f(y)) * p[z] * p[y] / together[z * 4 + y] / 2;
        for (std::size_t i : {z, y}) {
          mean[i] += together[z * 4 + y] * (i == z ? g : -g);
          square[i] += together[z * 4 + y] * g * g;
        }
      }
    const auto moments =
        exact_moments(*estimator_of("disarm_iw", *model), *model, one_example(), {std::vector<double>(4)}, 1e6);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(moments.mean[i] == doctest::Approx(mean[i]).epsilon(1e-12));
      CHECK(moments.variances[i] == doctest::Approx(square[i] - mean[i] * mean[i]).epsilon(1e-10));
    }
  }
  for (const auto* bits : {table_bits, three_bits}) {
    const auto model = model_of(bits);
    CHECK(variance_of("disarm_iw", *model) == doctest::Approx(variance_of("disarm", *model)).epsilon(1e-12));
  }
}

TEST_CASE("five of seven categories, drawn jointly") {
  const auto model = model_of("bits[options=4,function=linear,logit=0.2;-1.5;0.4;1]");
  CHECK(bias_of("carms[samples=5]", *model) < 1e-10);
  const auto wide = model_of("bits[options=7,function=linear,logit=0.2;-1.5;0.4;1;0;-4;2]");
  CHECK(bias_of("carms[samples=3]", *wide) < 1e-10);
  CHECK(bias_of("disarm_tree", *wide) < 1e-10);
}

// 4.2 is beyond the two-sided level of 1e-3 with Bonferroni's correction for 40 parameters.
constexpr double bound = 4.2;
constexpr int draws = 20000;

TEST_CASE("the mean of swaps is the gradient within its standard error") {
  for (const auto* spec : {"ars", "arsm", "arsm[samples=2,reward_to_go=true]"}) {
    CAPTURE(spec);
    for (const auto* toy :
         {"bits[bits=1,options=3,function=linear,logit=0.2;-1;0.4]", "bits[bits=2,options=3,function=table,logit=0.9;-0.1;0.4]",
          "bits[bits=2,options=4,function=linear,logit=0.9;-0.1;0.4;-2]"}) {
      CAPTURE(toy);
      const auto model = model_of(toy);
      CHECK(z_of(*estimator_of(spec, *model), *model, one_example(), draws) < bound);
    }
    for (bool feeding : {false, true}) {
      CAPTURE(feeding);
      Recurrent<double> model(feeding);
      CHECK(z_of(*estimator_of(spec, model), model, Recurrent<double>::batch(), draws / 4) < bound);
    }
  }
}

TEST_CASE("swaps are exact if all choices have two of three options") {
  auto batch = Recurrent<double>::batch().select({1});
  batch.integers["options"].flat(0) = 2;
  for (const auto* spec : {"ars", "arsm", "arsm[reward_to_go=true]"})
    for (bool feeding : {false, true}) {
      CAPTURE(spec);
      CAPTURE(feeding);
      Recurrent<double> model(feeding);
      CHECK(bias_of(spec, model, batch) < 1e-10);
    }
}

TEST_CASE("single precision follows double precision") {
  const auto batch = Recurrent<double>::batch();
  Recurrent<double> model(true);
  Recurrent<float> single(true);
  for (const auto* spec : {"carms", "disarm_tree", "disarm_stick", "ars", "arsm"}) {
    CAPTURE(spec);
    KeyedRandomness random(Key(21));
    const auto exact = gradient_of<double>(*estimator_of(spec, model), model, batch, random);
    const auto rounded =
        gradient_of<float>(*make_estimator<float>(Spec::parse(spec), single.structure(), Key(11)), single, batch, random);
    for (std::size_t i = 0; i < exact.size(); ++i) CHECK(std::abs(exact[i] - rounded[i]) < 1e-5);
  }
}

TEST_CASE("a constant cost gives zero per draw, and a shift changes nothing") {
  const auto binary = model_of("bits[bits=2,t=0.5,logit=0.7]");
  const auto table = model_of("bits[bits=2,options=3,function=table,logit=0.9;-0.1;0.4]");
  auto specs = exact_ones;
  specs.insert(specs.end(), {"ars", "arsm"});
  for (const auto& spec : specs) {
    CAPTURE(spec);
    CHECK(variance_of(spec, *binary) == 0);
    const auto estimator = estimator_of(spec, *table);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      KeyedRandomness random{Key(seed)};
      const auto plain = gradient_of<double>(*estimator, *table, one_example(), random);
      const auto shifted = gradient_of<double>(*estimator, Shifted(*table, 3), one_example(), random, table->parameters());
      for (std::size_t i = 0; i < plain.size(); ++i) REQUIRE(std::abs(plain[i] - shifted[i]) < 1e-12);
    }
  }
}

TEST_CASE("nearly certain choices give finite results") {
  for (const auto* logits : {"40;0;-40", "0;-800;800", "-800;0;1"}) {
    const auto table = model_of(fmt::format("bits[bits=2,options=3,function=table,logit={}]", logits));
    for (const auto* spec : {"carms", "disarm_tree", "disarm_stick", "disarm_stick[order=descending]", "ars", "arsm"})
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CAPTURE(spec);
        CAPTURE(logits);
        KeyedRandomness random{Key(seed)};
        for (double g : gradient_of<double>(*estimator_of(spec, *table), *table, one_example(), random))
          REQUIRE(std::isfinite(g));
      }
  }
}

TEST_CASE("swapped actions have the distribution of the original one") {
  const double p[] = {0.1, 0.6, 0.3};
  for (auto [c, j] : {std::pair{0, 0}, {0, 1}, {1, 2}}) {
    int count[3] = {};
    for (int m = 0; m < 30000; ++m) {
      KeyedRandomness random(Key(3) / static_cast<std::uint64_t>(m));
      double pi[3];
      draw_dirichlet(p, pi, random, {});
      ++count[swapped_action(p, pi, c, j)];
    }
    for (int i = 0; i < 3; ++i) CHECK(std::abs(count[i] / 30000.0 - p[i]) < 4.2 * std::sqrt(p[i] * (1 - p[i]) / 30000));
  }
}

TEST_CASE("impossible combinations are rejected with a remedy") {
  const auto refused = [](const std::string& spec, const std::string& toy, const char* why) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(estimator_of(spec, *model_of(toy)), doctest::Contains(why), UsageError);
  };
  for (const auto* spec : {"arm", "disarm", "arms"})
    refused(spec, "bits[options=3]", "needs bits; site `bit` has up to 3 options");
  refused("mvd", "bits[options=3]", "take an estimator for categories, e.g. local_expectation");
  for (int times : {1, 2, 3}) {
    const Structure structure = {
        .sites = {{.name = "place", .times = times, .scope = DependenceScope::own_costs, .kind = SiteKind::normal}}};
    CHECK((why_unsupported(Spec::parse("mvd"), structure) == "") == (times == 1));  // Normals one by one
  }
  for (const auto* spec : {"arm[samples=3]", "disarm[samples=5]", "disarm_tree[samples=3]", "disarm_stick[samples=3]"})
    refused(spec, "bits", "take an even number");
  refused("arms[samples=33]", "bits", "samples must be at most 32");
  refused("arms[samples=1]", "bits", "samples must be at least 2");
  refused("carms[samples=13]", "bits", "samples must be at most 12");
  refused("ars[samples=0]", "bits", "samples must be at least 1");
  refused("arsm", "bits[options=65]", "S (S - 1) / 2 rows each");
  refused("carms", "bits[options=65]", "one of S (S - 1) / 2 orders");
  const auto model = model_of("bits[options=3,function=linear]");
  CHECK_THROWS_WITH_AS(variance_of("arsm", *model), doctest::Contains("sample replicates"), UsageError);
}

TEST_CASE("wrong couplings of categories are detected") {
  const auto model = model_of("bits[options=3,function=linear,logit=0.2;-1;0.4]");
  // A stick of three: antithetic bits for option 0, then the rest. Without the part below the split, half of it is missing.
  const auto stick = [](Coupling& c, Randomness& random, Draw where) {
    for (int from = 0; from < 2; ++from) {
      const double r = from == 0 ? c.p[1] + c.p[2] : c.p[2] / (c.p[1] + c.p[2]);
      const auto side = antithetic_bits(1 - r, r, random, where);
      ++where.index;
      for (int k = 0; k < 2; ++k) c.option[k] = from + side[k];
      if (side[0] && side[1]) continue;
      const double rest[] = {c.p[1] / (c.p[1] + c.p[2]), c.p[2] / (c.p[1] + c.p[2])};
      for (int k = 0; k < 2; ++k)
        if (from == 0 && side[k]) c.option[k] = 1 + random.categorical(rest, where);
      return;
    }
  };
  const auto estimate = [](bool below) {
    return [below](const Coupling& c, std::span<const double> f, std::span<double> logits) {
      const int a = c.option[0], b = c.option[1];
      if (a == b) return;
      const int m = std::min(a, b);
      const double left = m == 0 ? 1 : c.p[1] + c.p[2], r = 1 - c.p[m] / left, d = (f[0] - f[1]) / 2 * (a == m ? 1 : -1);
      for (int i = m; i < 3; ++i) {
        const double after = i == m ? 0 : c.p[i] / (left - c.p[m]);
        logits[i] += d * std::max(r, 1 - r) * ((i == m) - after);
        if (below) logits[i] -= d * ((i == std::max(a, b)) - after);
      }
    };
  };
  CHECK(bias_of(FunctionCoupling(2, stick, estimate(true)), *model, one_example()) < 1e-10);
  CHECK(bias_of(FunctionCoupling(2, stick, estimate(false)), *model, one_example()) > 1e-3);

  // Leave-one-out of antithetic categories without their weights.
  const auto inverse = [](Coupling& c, Randomness& random, Draw where) {
    const double flips[] = {c.p[0], c.p[0] + c.p[1], c.p[2], c.p[1] + c.p[2]};
    const double u = random.uniform(where, {.breaks = flips, .polynomial = true});
    const auto at = [&](double x) { return x < c.p[0] ? 0 : x < c.p[0] + c.p[1] ? 1 : 2; };
    c.option[0] = at(u), c.option[1] = at(1 - u);
  };
  const auto unweighted = [](const Coupling& c, std::span<const double> f, std::span<double> logits) {
    logits[c.option[0]] += (f[0] - f[1]) / 2;
    logits[c.option[1]] -= (f[0] - f[1]) / 2;
  };
  CHECK(bias_of(FunctionCoupling(2, inverse, unweighted), *model, one_example()) > 1e-3);

  // Swaps weighted by the new coordinate instead of the old one.
  const auto swaps = [](Coupling& c, Randomness& random, Draw where) {
    draw_dirichlet(c.p, c.kept.first(3), random, where);
    for (std::size_t i = 0; i < 3; ++i) c.option[i] = swapped_action(c.p, c.kept.first(3), i, 2);
  };
  const auto weighted_by = [](bool reference) {
    return [reference](const Coupling& c, std::span<const double> f, std::span<double> logits) {
      const double mean = (f[0] + f[1] + f[2]) / 3;
      for (int i = 0; i < 3; ++i) logits[i] = (f[i] - mean) * (1 - 3 * c.kept[reference ? 2 : i]);
    };
  };
  CHECK(z_of(FunctionCoupling(3, swaps, weighted_by(true)), *model, one_example(), draws) < bound);
  CHECK(z_of(FunctionCoupling(3, swaps, weighted_by(false)), *model, one_example(), draws) > 3 * bound);
}

TEST_CASE("arsm, draw by draw: over all references j, the effect of a swap with j, times 1 / S - pi_j") {
  const auto swaps = [](Coupling& c, Randomness& random, Draw where) {
    draw_dirichlet(c.p, c.kept.first(3), random, where);
    const std::size_t of[][2] = {{0, 0}, {0, 1}, {0, 2}, {1, 2}};
    for (std::size_t i = 0; i < 4; ++i) c.option[i] = swapped_action(c.p, c.kept.first(3), of[i][0], of[i][1]);
  };
  const auto merged = [](const Coupling& c, std::span<const double> f, std::span<double> logits) {
    const double swapped[3][3] = {{f[0], f[1], f[2]}, {f[1], f[0], f[3]}, {f[2], f[3], f[0]}};
    for (int j = 0; j < 3; ++j) {
      const double mean = (swapped[0][j] + swapped[1][j] + swapped[2][j]) / 3;
      for (int i = 0; i < 3; ++i) logits[i] += (swapped[i][j] - mean) * (1.0 / 3 - c.kept[j]);
    }
  };
  const auto model = model_of("bits[bits=2,options=3,function=table,logit=0.9;-0.1;0.4]");
  const FunctionCoupling by_hand(4, swaps, merged);
  const auto arsm = estimator_of("arsm", *model);
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    KeyedRandomness random{Key(seed)};
    const auto wanted = gradient_of<double>(by_hand, *model, one_example(), random);
    const auto had = gradient_of<double>(*arsm, *model, one_example(), random);
    for (std::size_t i = 0; i < had.size(); ++i) {
      largest = std::max(largest, std::abs(wanted[i]));
      REQUIRE(std::abs(had[i] - wanted[i]) < 1e-14);
    }
  }
  CHECK(largest > 0.01);
}

}  // namespace
}  // namespace hardgrad::testing::coupled_categories_test
