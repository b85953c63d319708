// Estimators from distinct outcomes: unordered_set, sum_and_sample, wor_importance, and the search and sampling of their sets.
#include <doctest/doctest.h>

#include <map>

#include "core/estimator/without_replacement/leave_one_out_ratios.hpp"
#include "core/estimator/without_replacement/subset.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/outcomes.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::without_replacement_test {
using namespace measurement;
namespace {

using verification::Recurrent;

const std::vector<std::string> unbiased = {
    "unordered_set[samples=1,baseline=false]",
    "unordered_set[samples=2]",
    "unordered_set[samples=2,baseline=false]",
    "unordered_set[samples=3]",
    "unordered_set[samples=20]",
    "sum_and_sample[samples=1]",
    "sum_and_sample[samples=2]",
    "sum_and_sample[samples=3,baseline=0.7]",
    "sum_and_sample[samples=20]",
    "sum_and_sample[samples=1,set=sampled]",
    "sum_and_sample[samples=3,set=sampled,baseline=0.7]",
    "wor_importance[samples=2,baseline=false]",
    "wor_importance[samples=2]",
    "wor_importance[samples=20]",
};

TEST_CASE("distinct outcomes: the exact mean on a recurrent model, dependent and independent choices") {
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    for (const auto& spec : unbiased) {
      CAPTURE(feeding);
      CAPTURE(spec);
      CHECK(bias_of(spec, model, Recurrent<double>::batch()) < 1e-10);
    }
  }
}

TEST_CASE("distinct outcomes: the exact mean on bits") {
  for (const auto* toy : {three_bits, linear_bits, table_bits, one_bit, table_of_trits}) {
    auto model = model_of(toy);
    for (const auto& spec : unbiased) {
      CAPTURE(toy);
      CAPTURE(spec);
      if (!why_unsupported(Spec::parse(spec), model->structure()).empty()) continue;  // more samples than outcomes
      CHECK(bias_of(spec, *model) < 1e-10);
    }
  }
  auto model = model_of(table_of_trits);
  CHECK(bias_of("wor_importance[samples=3]", *model) < 1e-10);
}

TEST_CASE("distinct options of each choice: the exact mean for independent choices, rejected for others") {
  Recurrent<double> recurrent(false);
  for (const auto* spec :
       {"unordered_set[samples=2,per_step=true]", "sum_and_sample[samples=2,per_step=true]",
        "sum_and_sample[samples=2,set=sampled,per_step=true]", "unordered_set[samples=1,baseline=false,per_step=true]"}) {
    CAPTURE(spec);
    CHECK(bias_of(spec, recurrent, Recurrent<double>::batch().select({1})) < 1e-10);
    for (const auto* toy : {three_bits, linear_bits, one_bit}) {
      CAPTURE(toy);
      auto model = model_of(toy);
      CHECK(bias_of(spec, *model) < 1e-10);
    }
    Recurrent<double> sequential(true);
    CHECK_THROWS_WITH_AS(estimator_of(spec, sequential), doctest::Contains("set per_step=false"), UsageError);
  }
  const auto* weighted = "wor_importance[samples=2,per_step=true,baseline=false]";  // every step has a separate threshold
  CHECK(bias_of(weighted, recurrent, Recurrent<double>::batch().select({2})) < 1e-10);
  auto pairs = model_of(three_bits);  // both options of every bit: exact
  CHECK(variance_of(weighted, *pairs) < 1e-30);
  auto one = model_of("bits[bits=1,options=4,function=linear,logit=0.2;-0.1;0.4;1]");
  for (const std::string name :
       {"unordered_set[samples=2", "sum_and_sample[samples=2", "wor_importance[samples=2,baseline=false"})
    CHECK(variance_of(name + "]", *one) == doctest::Approx(variance_of(name + ",per_step=true]", *one)).epsilon(1e-12));
}

TEST_CASE("settings without an estimate are rejected") {
  auto model = model_of(one_bit);
  for (const auto* spec : {"unordered_set[samples=1]", "wor_importance[samples=1]", "wor_importance[samples=1,baseline=false]",
                           "unordered_set[samples=0]", "sum_and_sample[samples=0]", "kmax_marginal[k=0]",
                           "stratified[samples=0]", "unordered_set[samples=3]", "sum_and_sample[samples=3]",
                           "wor_importance[samples=3]", "unordered_set[samples=3,per_step=true]"}) {
    CAPTURE(spec);
    CHECK_THROWS_AS(estimator_of(spec, *model), UsageError);
  }
}

TEST_CASE("a set of all outcomes is exact, even with very improbable ones") {
  for (const auto* toy :
       {"bits[bits=3,t=0.6;0.51;0.48,shared_logit=true,logit=-4]", table_of_trits, "bits[bits=3,function=table,logit=-12]"}) {
    auto model = model_of(toy);
    const auto truth = exact_gradient({}, *model, one_example(), 1e6);
    for (const std::string name : {"unordered_set[", "unordered_set[baseline=false,", "sum_and_sample[",
                                   "sum_and_sample[set=sampled,", "wor_importance[", "wor_importance[normalise=true,"}) {
      CAPTURE(toy);
      CAPTURE(name);
      const int outcomes = static_cast<int>(model->outcomes(one_example())[0]);
      auto estimator = estimator_of(name + "samples=" + std::to_string(outcomes) + "]", *model);
      CHECK(variance_of(*estimator, *model, one_example()) < 1e-30);
      for (std::uint64_t seed : {1, 2, 3}) {
        const auto g = gradient_of(*estimator, *model, one_example(), Key(seed));
        for (std::size_t i = 0; i < g.size(); ++i) CHECK(std::abs(g[i] - truth[i]) < 1e-14);
      }
    }
  }
}

TEST_CASE("unordered_set: a constant added to f changes nothing, and a constant f gives zero, draw by draw") {
  auto constant = model_of("bits[bits=3,t=0.5,logit=0.7]");
  auto model = model_of(table_of_trits);
  const Shifted shifted(*model, 10);
  for (int k : {2, 4, 6}) {
    auto on_constant = estimator_of("unordered_set[samples=" + std::to_string(k) + "]", *constant);
    auto estimator = estimator_of("unordered_set[samples=" + std::to_string(k) + "]", *model);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CHECK(largest(gradient_of(*on_constant, *constant, one_example(), Key(seed))) == 0);
      KeyedRandomness random{Key(seed)};
      const auto moved = gradient_of(*estimator, shifted, one_example(), random, model->parameters());
      CHECK(largest_difference(moved, gradient_of(*estimator, *model, one_example(), Key(seed))) < 1e-13);
    }
  }
}

TEST_CASE("one outcome without baseline is REINFORCE") {
  Recurrent<double> recurrent(true);
  const double expected = variance_of("reinforce", recurrent, Recurrent<double>::batch());
  for (const auto* spec :
       {"unordered_set[samples=1,baseline=false]", "sum_and_sample[samples=1]", "sum_and_sample[samples=1,set=sampled]",
        "wor_importance[samples=1,baseline=false,normalise=true]"}) {
    CAPTURE(spec);
    CHECK(variance_of(spec, recurrent, Recurrent<double>::batch()) == doctest::Approx(expected).epsilon(1e-10));
  }
}

TEST_CASE("ratios by subsets equal those by orders, and the integral's") {
  const std::vector<std::vector<double>> sets = {{0.4},
                                                 {0.3, 0.05},
                                                 {0.2, 0.1, 0.4},
                                                 {0.3, 0.25, 0.01, 0.07, 0.02},
                                                 {0.5, 1e-7, 0.2},
                                                 {1e-9, 1e-6, 1e-3, 1e-12},
                                                 {0.25, 0.25, 0.25, 0.125}};
  for (const auto& p : sets) {
    const double rest = 1 - std::accumulate(p.begin(), p.end(), 0.0);
    CAPTURE(p.size());
    const auto subsets = ratios_by_subsets(p, rest), integral = ratios_by_integration(p, rest);
    const auto without = [&](std::vector<std::size_t> out) {
      std::vector<double> left;
      double total = 1;
      for (std::size_t s = 0; s < p.size(); ++s)
        if (std::find(out.begin(), out.end(), s) == out.end())
          left.push_back(p[s]);
        else
          total -= p[s];
      return set_probability(left, total);
    };
    for (std::size_t s = 0; s < p.size(); ++s) {
      CHECK(subsets.first[s] == doctest::Approx(p[s] * without({s}) / without({})).epsilon(1e-11));
      CHECK(integral.first[s] == doctest::Approx(subsets.first[s]).epsilon(1e-12));
      for (std::size_t o = 0; o < p.size(); ++o) {
        if (o != s)
          CHECK(subsets.second[s * p.size() + o] == doctest::Approx(p[o] * without({s, o}) / without({s})).epsilon(1e-11));
        CHECK(integral.second[s * p.size() + o] == doctest::Approx(subsets.second[s * p.size() + o]).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("weights of large sets sum to one, both by the integral and by subsets") {
  for (int k : {8, 12, 13, 20, 64})
    for (double decay : {1.0, 0.7, 0.3})
      for (double rest : {0.9, 0.1, 1e-6, 1e-14}) {
        CAPTURE(k);
        CAPTURE(decay);
        CAPTURE(rest);
        std::vector<double> p(k);
        double total = 0;
        for (int s = 0; s < k; ++s) total += p[s] = std::pow(decay, s);
        for (auto& v : p) v *= (1 - rest) / total;
        const auto r = leave_one_out_ratios(p, rest);
        CHECK(std::accumulate(r.first.begin(), r.first.end(), 0.0) == doctest::Approx(1).epsilon(1e-11));
        for (int s = 0; s < k; ++s)
          CHECK(std::accumulate(r.second.begin() + s * k, r.second.begin() + (s + 1) * k, 0.0) ==
                doctest::Approx(1).epsilon(1e-11));
        if (k > 13) continue;
        const auto a = ratios_by_subsets(p, rest), b = ratios_by_integration(p, rest);
        for (int s = 0; s < k; ++s) CHECK(b.first[s] == doctest::Approx(a.first[s]).epsilon(1e-11));
        for (int s = 0; s < k * k; ++s) CHECK(b.second[s] == doctest::Approx(a.second[s]).epsilon(1e-11));
      }
}

/// Weighted first and second moments of vectors, for the trace of their covariance.
struct Spread {
  std::vector<double> mean;
  double square = 0;
  void add(double weight, const std::vector<double>& g) {
    mean.resize(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      mean[i] += weight * g[i];
      square += weight * g[i] * g[i];
    }
  }
  double trace() const {
    double t = square;
    for (double m : mean) t -= m * m;
    return t;
  }
};

TEST_CASE("exact variances of unordered_set and sum_and_sample equal an enumeration over sets and orders") {
  for (double logit : {0.0, -1.0, -2.5}) {
    auto model = model_of("bits[bits=3,t=0.6;0.51;0.48,shared_logit=true,logit=" + std::to_string(logit) + "]");
    const auto all = all_outcomes(*model, one_example());
    REQUIRE(all.size() == 8);
    const auto probability = [&](const std::vector<int>& set, std::vector<int> out) {
      std::vector<double> p;
      double total = 1;
      for (int i : set)
        if (std::find(out.begin(), out.end(), i) == out.end()) p.push_back(all[i].p);
      for (int i : out) total -= all[i].p;
      return set_probability(p, total);
    };
    for (int k = 2; k <= 8; ++k) {
      CAPTURE(logit);
      CAPTURE(k);
      const auto samples = "samples=" + std::to_string(k);
      // The k - 1 most probable: fewest ones first, then in the order of the bits.
      std::vector<int> top(8);
      std::iota(top.begin(), top.end(), 0);
      const auto ones = [](int code) { return (code & 1) + (code >> 1 & 1) + (code >> 2 & 1); };
      std::stable_sort(top.begin(), top.end(), [&](int a, int b) { return logit < 0 && ones(a) < ones(b); });
      Spread spread;
      double left = 1;
      for (int c = 0; c < k - 1; ++c) left -= all[top[c]].p;
      for (int z = k - 1; z < 8; ++z) {
        std::vector<double> g(1);
        for (int c = 0; c < k - 1; ++c) g[0] += all[top[c]].p * all[top[c]].f * all[top[c]].score[0];
        g[0] += left * all[top[z]].f * all[top[z]].score[0];
        spread.add(all[top[z]].p / left, g);
      }
      CHECK(std::abs(variance_of("sum_and_sample[" + samples + "]", *model) - spread.trace()) < 1e-13);
      if (k > 4 && logit != -1) continue;
      Spread unordered;
      for_sets(8, k, [&](const std::vector<int>& set) {
        std::vector<double> g(1);
        for (int s : set) {
          double baseline = all[s].p * all[s].f;
          for (int o : set)
            if (o != s) baseline += all[o].p * probability(set, {s, o}) / probability(set, {s}) * all[o].f;
          g[0] += all[s].p * probability(set, {s}) / probability(set, {}) * all[s].score[0] * (all[s].f - baseline);
        }
        unordered.add(probability(set, {}), g);
      });
      CHECK(std::abs(variance_of("unordered_set[" + samples + "]", *model) - unordered.trace()) < 1e-12);
    }
  }
}

TEST_CASE("the unordered set has less variance than the importance weights it averages, and than one sample for the rest") {
  auto model = model_of(table_of_trits);
  const auto variance = [&](const std::string& spec) { return variance_of(spec, *model); };
  const double unordered = variance("unordered_set[samples=2,baseline=false]");
  CHECK(unordered < variance("wor_importance[samples=2,baseline=false]"));
  CHECK(unordered < variance("sum_and_sample[samples=2,set=sampled]"));
}

TEST_CASE("normalised wor_importance has the bias given by integration over the threshold") {
  auto model = model_of("bits[bits=1,options=3,function=linear,logit=0.2;-0.1;0.4]");
  const auto all = all_outcomes(*model, one_example());
  for (bool baseline : {false, true}) {
    std::vector<double> expected(3);
    for (int out = 0; out < 3; ++out) {  // the one outcome outside the set arrives at time E, the others earlier
      const int n = 400000;
      for (int j = 0; j < n; ++j) {
        const double E = 80.0 * (j + 0.5) / n, r = all[out].p;
        double density = r * std::exp(-r * E) * 80.0 / n, sum = 0, loss = 0;
        std::vector<double> w(3);
        for (int s = 0; s < 3; ++s) {
          if (s == out) continue;
          const double q = 1 - std::exp(-all[s].p * E);
          density *= q;
          w[s] = all[s].p / q;
          sum += w[s];
          loss += w[s] * all[s].f;
        }
        for (int s = 0; s < 3; ++s)
          for (int i = 0; i < 3 && s != out; ++i)
            expected[i] += density * all[s].score[i] *
                           (baseline ? w[s] / (sum - w[s] + all[s].p) * (all[s].f - loss / sum) : w[s] / sum * all[s].f);
      }
    }
    const auto truth = exact_reference({}, *model, one_example(), 10);
    const auto spec = std::string("wor_importance[samples=2,normalise=true,baseline=") + (baseline ? "true]" : "false]");
    const auto m = exact_moments(*estimator_of(spec, *model), *model, one_example(), truth.of_example, 1e6);
    double bias = 0;
    for (int i = 0; i < 3; ++i) {
      CHECK(std::abs(m.mean[i] - expected[i]) < 1e-8);
      bias = std::max(bias, std::abs(m.mean[i] - truth.gradient[i]));
    }
    CHECK(bias > 1e-3);
  }
}

/// Runs the handler on `examples` examples of the model.
template <class C>
std::vector<Beam> beams_of(C& handler, const Model<double>& model, const Batch& batch) {
  Tape<double> tape;
  Episode<double> episode(tape, handler, batch.examples());
  model.run(batch, episode);
  return handler.scopes()[0].beams;
}

TEST_CASE("the most probable paths come in order, with ties in lexicographic order") {
  const std::vector<std::vector<int>> order = {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0},
                                               {0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, 1}};
  for (const auto* function : {"square", "table"})
    for (double logit : {-0.1, -1.0, -4.0, 0.0}) {
      auto model =
          model_of(std::string("bits[bits=3,shared_logit=true,function=") + function + ",logit=" + std::to_string(logit) + "]");
      for (std::size_t k = 1; k <= 9; ++k) {
        const auto batch = one_example();
        TopHandler<double> handler(k, batch.id, nullptr);
        const auto beam = beams_of(handler, *model, batch)[0];
        REQUIRE(beam.paths.size() == std::min<std::size_t>(k, 8));
        double covered = beam.rest;
        for (std::size_t i = 0; i < beam.paths.size(); ++i) {
          if (logit < 0) CHECK(beam.paths[i].answer == order[i]);
          if (logit == 0) CHECK(beam.paths[i].answer == std::vector<int>{int(i >> 2 & 1), int(i >> 1 & 1), int(i & 1)});
          covered += std::exp(beam.paths[i].log_p);
        }
        CHECK(covered == doctest::Approx(1).epsilon(1e-14));
        if (k >= 8) CHECK(beam.rest == 0);
      }
    }
}

/// Largest |z| of counts against probabilities.
double worst_z(const std::map<std::vector<int>, double>& counts, const std::map<std::vector<int>, double>& probability,
               double draws) {
  double worst = 0, seen = 0;
  for (const auto& [what, p] : probability) {
    const double n = counts.contains(what) ? counts.at(what) : 0;
    seen += n;
    worst = std::max(worst, std::abs(n - draws * p) / std::sqrt(draws * p * (1 - p)));
  }
  CHECK(seen == draws);  // no impossible outcome
  return worst;
}

TEST_CASE(
    "stochastic beam search has the order and distribution of sampling without replacement, and its threshold has the "
    "distribution of the next") {
  const int draws = 100000;
  const auto batch = many(draws);
  for (const auto* toy : {"bits[bits=2,function=table,logit=0.9;-0.8]", "bits[bits=2,logit=0.9;-0.8]"}) {
    CAPTURE(toy);
    auto model = model_of(toy);
    const auto all = all_outcomes(*model, one_example());
    KeyedRandomness random{Key(17)};
    StochasticHandler<double> handler(2, batch.id, nullptr, random);
    std::map<std::vector<int>, double> counts, probability;
    const double bounds[] = {-0.8, -0.2, 0.6};  // thresholds fall into four bins
    const auto bin = [&](double kappa) { return static_cast<int>(std::upper_bound(bounds, bounds + 3, kappa) - bounds); };
    for (const auto& beam : beams_of(handler, *model, batch)) {
      REQUIRE(beam.paths.size() == 2);
      const auto code = [&](int n) { return 2 * beam.paths[n].answer[0] + beam.paths[n].answer[1]; };
      ++counts[{code(0), code(1)}];
      ++counts[{std::min(code(0), code(1)), std::max(code(0), code(1)), bin(beam.threshold)}];
    }
    std::map<std::vector<int>, double> ordered, with_threshold, ordered_counts, threshold_counts;
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b < 4; ++b) {
        if (a == b) continue;
        ordered[{a, b}] = all[a].p * all[b].p / (1 - all[a].p);
        if (a > b) continue;
        const double rest = 1 - all[a].p - all[b].p;
        const int n = 200000;
        for (int j = 0; j < n; ++j) {
          const double E = 60.0 * (j + 0.5) / n;
          with_threshold[{a, b, bin(-std::log(E))}] +=
              60.0 / n * rest * std::exp(-rest * E) * (1 - std::exp(-all[a].p * E)) * (1 - std::exp(-all[b].p * E));
        }
      }
    for (const auto& [what, n] : counts) (what.size() == 2 ? ordered_counts : threshold_counts)[what] = n;
    CHECK(worst_z(ordered_counts, ordered, draws) < 4.6);  // Bonferroni over 72 counts at a level of 3e-4
    CHECK(worst_z(threshold_counts, with_threshold, draws) < 4.6);
  }
}

TEST_CASE("with continuous noise the estimates have the target as mean, within five standard errors") {
  auto table = model_of(table_of_trits);
  auto bits = model_of(three_bits);
  const Recurrent<double> dependent(true), independent(false);
  const auto ragged = Recurrent<double>::batch();
  std::vector<int> positions;
  for (int n = 0; n < 150; ++n) positions.push_back(n % 3);
  auto repeated = ragged.select(positions);
  repeated.id = many(150).id;
  const int blocks = 100;
  struct Case {
    const Model<double>& model;
    Batch one, repeated;
  };
  for (const auto& [model, one, repeated] : {Case{*table, one_example(), many(500)}, Case{*bits, one_example(), many(500)},
                                             Case{dependent, ragged, repeated}, Case{independent, ragged, repeated}})
    for (const auto* spec :
         {"unordered_set[samples=3]", "unordered_set[samples=14]", "sum_and_sample[samples=3,set=sampled]",
          "sum_and_sample[samples=3]", "wor_importance[samples=3,baseline=false]", "wor_importance[samples=5]"}) {
      CAPTURE(spec);
      if (!why_unsupported(Spec::parse(spec), model.structure()).empty()) continue;
      const auto truth = exact_gradient({}, model, one, 100);
      auto estimator = estimator_of(spec, model);
      std::vector<double> sum(truth.size()), square(truth.size());
      for (std::uint64_t block = 0; block < blocks; ++block) {
        const auto g = gradient_of(*estimator, model, repeated, Key(5) / block);
        for (std::size_t i = 0; i < g.size(); ++i) {
          sum[i] += g[i] / blocks;
          square[i] += g[i] * g[i] / blocks;
        }
      }
      for (std::size_t i = 0; i < truth.size(); ++i) {
        const double error = std::sqrt(std::max(0.0, square[i] - sum[i] * sum[i]) / (blocks - 1));
        CHECK(std::abs(sum[i] - truth[i]) < 5 * error + 1e-13);
      }
    }
}

TEST_CASE("common parts share rows, and at most k rows a step are run") {
  Recurrent<double> sequential(true), factorised(false);
  const auto batch = Recurrent<double>::batch();
  KeyedRandomness random{Key(1)};
  for (auto* model : {&sequential, &factorised})
    for (const auto* spec : {"unordered_set[samples=4]", "sum_and_sample[samples=4]"}) {
      Tape<double> tape;
      const auto estimate = estimator_of(spec, *model)->draw({tape, *model, batch.select({1}), random});
      CHECK(estimate.episode->rows_evaluated() <= 3 + 4 + 4);
      if (model == &factorised) CHECK(estimate.episode->rows_evaluated() <= 3 + 3 + 1);
      CHECK(std::isfinite(estimate.loss));
    }
}

// Deliberately wrong rules, each with one plausible mistake.
enum class Mistake { none, self_normalised, no_own_term, sample_without_its_weight, uncorrected_baseline, sign };

class Wrong final : public Estimator<double> {
 public:
  explicit Wrong(Mistake mistake) : mistake_(mistake) {}
  Estimate<double> estimate(const Problem<double>& problem) const override {
    return Subset<double>::without_replacement(problem, 2, false, mistake_ == Mistake::uncorrected_baseline)
        .estimate([this](const Beam& beam, std::span<const double> f) {
          const auto p = probabilities(beam);
          const auto ratios = leave_one_out_ratios(p, beam.rest);
          Subset<double>::Weights w{std::vector<double>(f.size()), ratios.first};
          for (std::size_t s = 0; s < f.size(); ++s) {
            double baseline = 0;
            for (std::size_t o = 0; o < f.size(); ++o)
              if (o != s || mistake_ != Mistake::no_own_term) baseline += ratios.second[s * f.size() + o] * f[o];
            w.score[s] = ratios.first[s] * (f[s] - baseline);
            if (mistake_ == Mistake::sign) w.score[s] = -w.score[s];
            if (mistake_ == Mistake::self_normalised) {  // p over the sum of p in the set
              w.path[s] = p[s] / std::accumulate(p.begin(), p.end(), 0.0);
              w.score[s] = w.path[s] * f[s];
            }
            if (mistake_ == Mistake::sample_without_its_weight) {
              w.path[s] = s == 0 ? p[0] : 1;
              w.score[s] = w.path[s] * f[s];
            }
            if (mistake_ == Mistake::uncorrected_baseline) {  // the baseline has no correction for its own term
              const double kappa = beam.threshold;
              double loss = 0;
              for (std::size_t o = 0; o < f.size(); ++o) loss += inclusion_weight(p[o], kappa) * f[o];
              w.path[s] = inclusion_weight(p[s], kappa);
              w.score[s] = w.path[s] * (f[s] - loss);
            }
          }
          return w;
        });
  }
  bool exchangeable() const override { return false; }

 private:
  Mistake mistake_;
};

TEST_CASE("wrong rules for distinct outcomes are detected") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch().select({1});
  CHECK(bias_of(Wrong(Mistake::none), model, batch) < 1e-10);
  for (auto mistake : {Mistake::self_normalised, Mistake::no_own_term, Mistake::sample_without_its_weight,
                       Mistake::uncorrected_baseline, Mistake::sign}) {
    CAPTURE(static_cast<int>(mistake));
    CHECK(bias_of(Wrong(mistake), model, batch) > 1e-3);
  }
}

TEST_CASE(
    "wor_importance: its variance is known to be infinite with fewer than four samples of more outcomes, and not otherwise") {
  const auto& entry = Estimators::instance().at("wor_importance");
  const auto model = model_of("bits[bits=2,options=3]");  // nine outcomes, three a step
  const auto infinite = [&](const std::string& spec) {
    const auto parsed = Spec::parse(spec);
    return entry.infinite_variance(Settings(parsed.name, entry.parameters, parsed), model->structure(), 9) != "";
  };
  CHECK(infinite("wor_importance[samples=2]"));
  CHECK(infinite("wor_importance[samples=3]"));
  CHECK_FALSE(infinite("wor_importance[samples=4]"));
  CHECK_FALSE(infinite("wor_importance[samples=9]"));
  CHECK_FALSE(infinite("wor_importance[samples=2,baseline=false]"));
  CHECK_FALSE(infinite("wor_importance[samples=2,normalise=true]"));
  CHECK(infinite("wor_importance[samples=2,per_step=true]"));
  CHECK_FALSE(infinite("wor_importance[samples=3,per_step=true]"));  // all outcomes
}

}  // namespace
}  // namespace hardgrad::testing::without_replacement_test
