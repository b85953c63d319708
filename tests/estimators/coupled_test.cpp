// Coupled bits: antithetic pairs and sets, and both values of each bit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/estimator/coupling/antithetic_bits.hpp"
#include "core/estimator/coupling/dirichlet.hpp"
#include "experiments/measurement/noise_enumerator.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/coupling.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::coupled_test {
using namespace measurement;
namespace {

using verification::Recurrent;

const std::vector<std::string> for_bits = {"disarm",
                                           "disarm[samples=4]",
                                           "disarm[reward_to_go=true]",
                                           "arm",
                                           "arm[reward_to_go=true]",
                                           "arms",
                                           "arms[samples=2]",
                                           "arms[samples=3,reward_to_go=true]",
                                           "mvd",
                                           "mvd[samples=2]",
                                           "ars",
                                           "ars[reward_to_go=true]",
                                           "arsm",
                                           "arsm[reward_to_go=true]",
                                           "carms[samples=2]",
                                           "carms[samples=3,reward_to_go=true]",
                                           "disarm_tree",
                                           "disarm_stick"};
bool has_many_outcomes(const std::string& spec) {
  return spec == "arms" || spec == "disarm[samples=4]" || spec == "mvd[samples=2]" || spec.starts_with("ar") ||
         spec.starts_with("carms[samples=3");
}

TEST_CASE("coupled bits have the gradient of the expected loss as mean, dependent and independent choices") {
  for (const auto& spec : for_bits) {
    CAPTURE(spec);
    for (bool feeding : {false, true}) {
      CAPTURE(feeding);
      Recurrent<double> model(feeding, Key(5), 2);
      CHECK(bias_of(spec, model, affordable(Recurrent<double>::batch(2), has_many_outcomes(spec))) < 1e-10);
    }
    for (const auto* toy : {"bits[bits=2,t=0.6;0.51,shared_logit=true,logit=-1]", table_bits,
                            "bits[bits=2,function=norm,reduce=mean,t=0.3]", "bits[logit=2]"}) {
      CAPTURE(toy);
      const auto model = model_of(toy);
      CHECK(bias_of(spec, *model) < 1e-10);
    }
  }
}

TEST_CASE("three bits that share a logit, and a table over three") {
  for (const auto* spec : {"disarm", "arm", "arms[samples=3]", "mvd", "arsm", "carms[samples=3]", "disarm_tree"})
    for (const auto* toy : {three_bits, "bits[bits=3,function=table,logit=0.3;-0.8;1.5]"}) {
      CAPTURE(spec);
      CAPTURE(toy);
      const auto model = model_of(toy);
      CHECK(bias_of(spec, *model) < 1e-10);
    }
}

TEST_CASE("all sequential choices of the longest example, with continuous noise") {
  Recurrent<double> model(true, Key(5), 2);
  for (const auto* spec : {"arm", "arms[samples=3]"})
    CHECK(bias_of(spec, model, Recurrent<double>::batch(2).select({0})) < 1e-10);
}

TEST_CASE("many bits in one set have the same mean") {
  const auto model = model_of("bits[logit=-0.3,t=0.2]");
  for (int k : {8, 12}) CHECK(bias_of(fmt::format("arms[samples={}]", k), *model) < 1e-10);
}

struct OneBit {
  double phi, t = 0.45, p = 1 / (1 + std::exp(-phi)), m = std::min(p, 1 - p), v = p * (1 - p), D = 1 - 2 * t;
  std::unique_ptr<Model<double>> model = model_of(fmt::format("bits[t={},logit={}]", t, phi));
  double variance(const std::string& spec) const { return variance_of(spec, *model); }
};

TEST_CASE("the variances of disarm and arm on one bit equal the closed forms") {
  for (double phi : {-2.0, 0.0, 0.4, 3.0}) {
    CAPTURE(phi);
    const OneBit bit{phi};
    const auto [m, D] = std::pair{bit.m, bit.D};
    CHECK(bit.variance("disarm") == doctest::Approx(D * D * (1 - m) * (1 - m) * m * (0.5 - m)).epsilon(1e-12));
    const double arm = D * D * ((1 - std::pow(1 - 2 * m, 3)) / 12 - bit.v * bit.v);
    CHECK(bit.variance("arm") == doctest::Approx(arm).epsilon(1e-11));
    for (const auto* swaps : {"ars", "arsm"}) CHECK(bit.variance(swaps) == doctest::Approx(arm).epsilon(1e-11));
    CHECK(std::abs(bit.variance("mvd")) < 1e-30);
  }
  CHECK(OneBit{0}.variance("arm") == doctest::Approx(2.0833e-4).epsilon(1e-4));
  CHECK(std::abs(OneBit{0}.variance("disarm")) < 1e-30);
}

TEST_CASE("disarm is the mean of arm given the pair, and its variance is not larger") {
  for (double phi : {-1.3, 0.0, 0.7}) {
    const OneBit bit{phi};
    // Given the pair, u is uniform between the places at which a bit flips, and arm is linear in u: its mean is that at the
    // middle.
    for (int outcome = 0; outcome < 3; ++outcome) {  // of the pair: both equal, only b is 1, only b~ is 1
      Told noise;
      noise.u = 0.5;
      noise.outcome = outcome;
      const auto arm = gradient_of<double>(*estimator_of("arm", *bit.model), *bit.model, one_example(), noise);
      const auto disarm = gradient_of<double>(*estimator_of("disarm", *bit.model), *bit.model, one_example(), noise);
      CHECK(arm[0] == doctest::Approx(disarm[0]).epsilon(1e-13));
    }
  }
  const auto compare = [](const Model<double>& model, const Batch& batch) {
    CHECK(variance_of("disarm", model, batch) <= variance_of("arm", model, batch) + 1e-15);
  };
  for (const auto* toy :
       {table_bits, "bits[bits=3,function=table,table_seed=4,logit=-2;0.1;1]", "bits[bits=2,function=norm,t=0.3,logit=1;-1]"})
    compare(*model_of(toy), one_example());
  for (bool feeding : {false, true}) compare(Recurrent<double>(feeding, Key(5), 2), Recurrent<double>::batch(2).select({1}));
}

TEST_CASE("two antithetic bits or categories equal disarm, four have less variance than two pairs on one bit") {
  const auto same = [](const Model<double>& model, const Batch& batch, std::vector<std::string> specs) {
    const double variance = variance_of("disarm", model, batch);
    for (const auto& spec : specs) {
      CAPTURE(spec);
      CHECK(variance_of(spec, model, batch) == doctest::Approx(variance).epsilon(1e-10));
    }
  };
  const std::vector<std::string> pairs = {"arms[samples=2]", "carms[samples=2]", "disarm_tree", "disarm_stick",
                                          "disarm_stick[order=ascending]"};
  same(*model_of(table_bits), one_example(), pairs);
  for (bool feeding : {false, true}) same(Recurrent<double>(feeding, Key(5), 2), Recurrent<double>::batch(2), pairs);
  for (double phi : {-3.0, -1.0, 0.5}) {
    const OneBit bit{phi};
    CHECK(bit.variance("arms[samples=4]") < bit.variance("disarm[samples=4]"));
  }
  // CARMS treats the first option as the rare one; ARMS uses the rarer one.
  const OneBit likely{1.2}, rare{-1.2};
  CHECK(likely.variance("carms[samples=3]") == doctest::Approx(likely.variance("arms[samples=3]")).epsilon(1e-10));
  CHECK(rare.variance("carms[samples=3]") > 1.2 * rare.variance("arms[samples=3]"));
}

TEST_CASE("a constant cost gives zero per draw, a shift changes nothing, and with separate costs mvd has no noise") {
  const auto constant = model_of("bits[bits=2,t=0.5,logit=0.7]");
  const auto table = model_of(table_bits);
  Recurrent<double> feeding(true, Key(5), 2);
  for (const auto& spec : for_bits) {
    CAPTURE(spec);
    CHECK(variance_of(spec, *constant) == 0);
    for (const Model<double>* model :
         {static_cast<const Model<double>*>(table.get()), static_cast<const Model<double>*>(&feeding)}) {
      const auto batch = model == &feeding ? Recurrent<double>::batch(2) : one_example();
      KeyedRandomness random(Key(8));
      const auto estimator = estimator_of(spec, *model);
      const auto plain = gradient_of<double>(*estimator, *model, batch, random);
      const auto shifted = gradient_of<double>(*estimator, Shifted(*model, 3), batch, random, model->parameters());
      for (std::size_t i = 0; i < plain.size(); ++i) CHECK(std::abs(plain[i] - shifted[i]) < 1e-12);
    }
  }
  const auto separate = model_of("bits[bits=3,t=0.6;0.51;0.48,logit=-1;0.2;3]");
  CHECK(variance_of("mvd", *separate) < 1e-30);
}

TEST_CASE("nearly certain choices give finite results") {
  for (const auto* logits : {"40;-40", "800;-800"}) {
    const auto table = model_of(fmt::format("bits[bits=2,function=table,logit={}]", logits));
    for (const auto& spec : for_bits)
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        CAPTURE(spec);
        KeyedRandomness random{Key(seed)};
        const auto g = gradient_of<double>(*estimator_of(spec, *table), *table, one_example(), random);
        CHECK(largest(g) < 1e-3);
        CHECK(std::isfinite(g[0] + g[1]));
      }
  }
}

TEST_CASE("rows of runs: joint and branching members") {
  const auto table = model_of("bits[bits=3,function=table]"), separate = model_of("bits[bits=3]");
  const auto rows = [](const std::string& spec, const Model<double>& model) { return Drawn(spec, model).estimate.rows(); };
  CHECK(rows("arms", *table) == 4);
  CHECK(rows("mvd", *table) == 1 + 3);  // each bit's flip has a row
  CHECK(rows("mvd", *separate) == 2);   // all flips share one row, with separate costs
  const verification::Recurrent<double> fed(true, Key(5), 2), chain(false, Key(5), 2);
  const auto of_recurrent = [](const std::string& spec, const Model<double>& model) {
    const auto batch = verification::Recurrent<double>::batch(2).select({1});  // two steps, and one finished step
    return Drawn(spec, model, batch).estimate.rows();
  };
  CHECK(of_recurrent("arms", fed) == 4 + 7 + 10);
  CHECK(of_recurrent("arms", chain) == 3 * 4);
  CHECK(of_recurrent("mvd", fed) == 2 + 3 + 4);
}

TEST_CASE("the distributions of the Dirichlet copula agree with each other") {
  for (int K : {2, 3, 5, 9, 24})
    for (double q : {0.5, 0.41, 0.1, 1e-4}) {
      CAPTURE(K);
      CAPTURE(q);
      const DirichletCopula copula(K);
      std::vector<double> law(K + 1), correlation(1);
      copula.counts({&q, 1}, law);
      copula.correlations({&q, 1}, correlation);
      double mean = 0, pairs = 0;
      for (int m = 0; m <= K; ++m) {
        mean += m * law[m];
        pairs += m * (m - 1) * law[m];
      }
      CHECK(mean == doctest::Approx(K * q).epsilon(1e-10));
      CHECK(std::abs(pairs - K * (K - 1) * copula.pair({q, 1 - q}, {q, 1 - q})) < 1e-10);
      CHECK(correlation[0] * q * (1 - q) == doctest::Approx(copula.pair({q, 1 - q}, {q, 1 - q}) - q * q).epsilon(1e-12));
      CHECK(correlation[0] < 0);
    }
  // Intervals drawn in succession, all outcomes visited: the marginals, the pairs, and exchangeability.
  const DirichletCopula copula(3);
  const Edge edge[] = {{0, 1}, {0.15, 0.85}, {0.6, 0.4}, {1, 0}};
  NoiseEnumerator enumerator(false);
  std::map<std::vector<int>, double> law;
  do {
    enumerator.begin();
    std::vector<int> drawn(3);
    copula.draw_intervals(edge, drawn, enumerator, {});
    law[drawn] += enumerator.weight();
  } while (enumerator.next());
  double first[3] = {}, both = 0;
  for (const auto& [drawn, p] : law) {
    first[drawn[1]] += p;
    if (drawn[0] == 1 && drawn[2] == 2) both += p;
    CHECK(law[{drawn[2], drawn[0], drawn[1]}] == doctest::Approx(p).epsilon(1e-12));
  }
  for (int i = 0; i < 3; ++i) CHECK(first[i] == doctest::Approx(edge[i + 1].below - edge[i].below).epsilon(1e-13));
  CHECK(both == doctest::Approx(copula.box(edge[1], edge[2], edge[2], edge[3])).epsilon(1e-12));
  CHECK(both == doctest::Approx(copula.pair(edge[2], edge[3]) - copula.pair(edge[1], edge[3]) - copula.pair(edge[2], edge[2]) +
                                copula.pair(edge[1], edge[2]))
                    .epsilon(1e-12));
}

TEST_CASE("wrong couplings of bits are detected") {
  const auto pair = [](Coupling& c, Randomness& random, Draw where) {
    const auto bits = antithetic_bits(c.p[0], c.p[1], random, where);
    c.option[0] = bits[0], c.option[1] = bits[1];
  };
  const auto noisy = [](Coupling& c, Randomness& random, Draw where) {
    const double flips[] = {c.p[1], 1 - c.p[1]}, u = random.uniform(where, {.breaks = flips, .polynomial = true});
    c.option[0] = u<c.p[1], c.option[1] = u> 1 - c.p[1], c.kept[0] = u;
  };
  const auto complement = [&](Coupling& c, Randomness& random, Draw where) {
    noisy(c, random, where);
    c.option[1] = 1 - c.option[0];
  };
  const auto both = [](Coupling& c, Randomness& random, Draw where) {
    c.option[0] = random.categorical(c.p, where), c.option[1] = 1 - c.option[0];
  };
  const auto at_logit = [](auto g) {
    return [g](const Coupling& c, std::span<const double> f, std::span<double> logits) {
      logits[1] = g(c, f), logits[0] = -logits[1];
    };
  };
  const auto disarm = [](double factor) {
    return [factor](const Coupling& c, std::span<const double> f) {
      return factor * (f[0] - f[1]) * (c.option[0] - c.option[1]) * std::max(c.p[0], c.p[1]) / 2;
    };
  };
  const auto arm = [](double centre) {
    return [centre](const Coupling& c, std::span<const double> f) { return (f[1] - f[0]) * (c.kept[0] - centre); };
  };
  const auto undebiased = [](const Coupling& c, std::span<const double> f) {
    return (f[0] - f[1]) * (c.option[0] - c.option[1]) / 2;
  };
  const auto flip = [](const Coupling& c, std::span<const double> f) {
    return c.p[0] * c.p[1] * (c.option[0] - c.option[1]) * (f[0] - f[1]);
  };
  const auto table = model_of(table_bits);
  const auto bias = [&](const FunctionCoupling& made) { return bias_of(made, *table, one_example()); };
  CHECK(bias(FunctionCoupling(2, pair, at_logit(disarm(1)))) < 1e-10);
  CHECK(bias(FunctionCoupling(2, pair, at_logit(disarm(-1)))) > 1e-3);
  CHECK(bias(FunctionCoupling(2, pair, at_logit(undebiased))) > 1e-3);  // ARMS without 1 / (1 - rho)
  CHECK(bias(FunctionCoupling(2, noisy, at_logit(arm(0.5)))) < 1e-10);
  CHECK(bias(FunctionCoupling(2, noisy, at_logit(arm(0)))) < 1e-10);  // right: E[f(b~) - f(b)] = 0, so any centre is valid
  CHECK(bias(FunctionCoupling(2, complement, at_logit(arm(0.5)))) > 1e-3);  // b~ = 1 - b instead of the antithetic bit
  CHECK(bias(FunctionCoupling(2, both, at_logit(flip), false)) < 1e-10);
  CHECK(bias(FunctionCoupling(2, both, at_logit(flip), true)) > 1e-3);  // flipped values share a path as if they were samples
}

}  // namespace
}  // namespace hardgrad::testing::coupled_test
