// Limits of a sample are reported: rare terms, heavy tails, a variance carried by few replicates.
#include "experiments/measurement/summary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/autodiff/tape.hpp"
#include "core/support/log_gamma.hpp"
#include "experiments/measurement/draw.hpp"
#include "experiments/measurement/paths.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::support_test {
using namespace measurement;
namespace {

/// Fills the incomplete blocks with draws of the first parameter, of(random, m).
template <class F>
ReplicateStatistics filled(ReplicateSums sums, F of) {
  for (int b = sums.next(); b < sums.blocks(); ++b) {
    for (int m = sums.range(b)[0]; m < sums.range(b)[1]; ++m) sums.add(b, of(m));
    sums.complete(b);
  }
  return ReplicateStatistics(std::move(sums));
}

std::vector<double> normal_pair(int m) {
  KeyedRandomness random(Key(31));
  const auto replica = static_cast<std::uint32_t>(m);
  return {1 + random.normal({.replica = replica}), random.normal({.replica = replica, .index = 1})};
}

TEST_CASE("replicates that were doubled equal those drawn from the start") {
  int compared = 0;
  for (int first : {2, 3, 16, 20, 31, 32, 33, 100, 257}) {
    CAPTURE(first);
    auto grown = filled({{1, 0}, 2, first}, normal_pair);
    const auto whole = filled({{1, 0}, 2, 4 * first}, normal_pair);
    for (int twice = 0; twice < 2; ++twice) {
      auto sums = std::move(grown).sums();
      sums.grow();
      CHECK((twice == 0 || sums.blocks() == std::min(4 * first, 32)));
      grown = filled(std::move(sums), normal_pair);
    }
    REQUIRE(grown.count() == whole.count());
    CHECK(grown.variance() == doctest::Approx(whole.variance()).epsilon(1e-12));
    CHECK(grown.mean()[0] == doctest::Approx(whole.mean()[0]).epsilon(1e-12));
    CHECK(grown.cosine() == doctest::Approx(whole.cosine()).epsilon(1e-12));
    CHECK(grown.corrected_bias_p_value(0) == doctest::Approx(whole.corrected_bias_p_value(0)).epsilon(1e-9));
    for (int end : {0, 1}) {
      CHECK(grown.variance_interval(0.95)[end] == doctest::Approx(whole.variance_interval(0.95)[end]).epsilon(1e-9));
      CHECK(grown.distance({1, 0}).interval(0.95)[end] ==
            doctest::Approx(whole.distance({1, 0}).interval(0.95)[end]).epsilon(1e-5));
    }
    ++compared;
  }
  CHECK(compared == 9);
}

TEST_CASE("the tail index is that of a Pareto distribution, and large without a heavy tail") {
  for (double index : {0.7, 1.5, 3.0}) {  // of the squares
    CAPTURE(index);
    double mean = 0;
    for (std::uint64_t run = 0; run < 20; ++run) {
      const auto r = filled({{0}, 0, 4000}, [&](int m) {
        KeyedRandomness random(Key(32) / run);
        const auto replica = static_cast<std::uint32_t>(m);
        const double sign = random.uniform({.replica = replica, .index = 1}) < 0.5 ? -1 : 1;
        return std::vector<double>{sign * std::pow(random.uniform({.replica = replica}), -0.5 / index)};
      });
      mean += r.tail().index / 20;
      CHECK(r.tail().error == doctest::Approx(1 / std::sqrt(63)));
    }
    CHECK(mean == doctest::Approx(index).epsilon(0.15));
  }
  const auto calm = filled({{1, 0}, 0, 4000}, normal_pair), few = filled({{1, 0}, 0, 99}, normal_pair);
  CHECK(calm.tail().index > 3);
  CHECK(std::isnan(few.tail().index));
}

Measurement sampled(const std::string& estimator, const std::string& model_spec, int replicates, int most,
                    double outcome_cap = 2e6, Key key = Key(34)) {
  const auto model = model_of(model_spec);
  MeasureSettings settings;
  settings.method = Method::sampled;
  settings.replicates = replicates;
  settings.most_replicates = most;
  settings.outcome_cap = outcome_cap;
  return measure(Spec::parse(estimator), *estimator_of(estimator, *model), *model, one_example(), settings, key);
}

Measurement exactly(const std::string& estimator, const std::string& model_spec) {
  const auto model = model_of(model_spec);
  MeasureSettings settings;
  settings.method = Method::exact;
  return measure(Spec::parse(estimator), *estimator_of(estimator, *model), *model, one_example(), settings, Key(1));
}

TEST_CASE("outcomes are counted for any number") {
  CHECK(multisets(4, 2) == 10);
  CHECK(multisets(1, 7) == 1);
  CHECK(multisets(3, 1e6) == doctest::Approx(1000002.0 * 1000001 / 2));
  CHECK(multisets(std::ldexp(1.0, 200), 1) == std::ldexp(1.0, 200));
  CHECK(multisets(1e30, 3) == doctest::Approx(1e90 / 6));
  std::string why;
  try {
    exactly("reinforce", "bits[bits=200]");
  } catch (const NotExact& e) {
    why = e.what();
  }
  CHECK(why.find("about 1.60694e+60 outcomes") != std::string::npos);
}

TEST_CASE("a variance carried by one replicate counts as one") {
  const auto one = filled({{0}, 0, 320}, [](int m) { return std::vector<double>{m == 77 ? 1000 : 1e-3 * m}; });
  const auto all = filled({{0}, 0, 320}, [](int m) { return std::vector<double>{m % 2 ? 1.0 : -1.0}; });
  CHECK(one.effective_sample_size() == doctest::Approx(1).epsilon(0.1));
  CHECK(all.effective_sample_size() > 150);
}

TEST_CASE("the unvisited mass is the probability of the choices that no replicate made") {
  const auto model = model_of("bits[bits=2,options=3,t=0.3,logit=0;1;2]");
  const auto batch = one_example();
  Visited visited(*model, batch);
  ReplicateSums r(std::vector<double>(6), 0, 5);
  draw(r, *estimator_of("reinforce", *model), *model, batch, Key(33), {}, {}, &visited);
  double seen = 0;  // of the nine outcomes, from the same draws
  std::vector<int> found;
  for (std::uint64_t m = 0; m < 5; ++m) {
    Tape<double> tape;
    KeyedRandomness random(Key(33) / m);
    const auto estimate = estimator_of("reinforce", *model)->draw({tape, *model, batch, random});
    const auto& choice = estimate.episode->steps()[0].choice;
    const int outcome = choice.option()[0] * 3 + choice.option()[1];
    if (std::count(found.begin(), found.end(), outcome)) continue;
    found.push_back(outcome);
    const double sum = 1 + std::exp(1) + std::exp(2);
    seen += std::exp(choice.option()[0] + choice.option()[1]) / (sum * sum);
  }
  CHECK(visited.missing() == doctest::Approx(1 - seen).epsilon(1e-12));
  CHECK(visited.missing() > 0);
  Visited everything(*model, batch);
  ReplicateSums exact(std::vector<double>(6), 0, 2);
  draw(exact, *estimator_of("exact", *model), *model, batch, Key(33), {}, {}, &everything);
  CHECK((everything.missing() == 0 || std::isnan(everything.missing())));
}

TEST_CASE("the unvisited mass of subsets") {
  const auto model = model_of("subsets[options=4,picks=2,logit=0;1;2;0.5]");
  const auto batch = one_example();
  const double weight[] = {1, std::exp(1), std::exp(2), std::exp(0.5)};
  double all = 0, seen = 0;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < i; ++j) all += weight[i] * weight[j];
  std::set<std::vector<int>> found;
  for (std::uint64_t m = 0; m < 4; ++m) {
    Tape<double> tape;
    KeyedRandomness random(Key(5) / m);
    found.insert(estimator_of("reinforce", *model)->draw({tape, *model, batch, random}).episode->steps()[0].choice.picked());
  }
  for (const auto& subset : found) seen += weight[subset[0]] * weight[subset[1]] / all;
  for (const char* spec : {"reinforce", "sparse_mixer[order=1]"}) {  // hard choices, and choices entered as weights
    Visited visited(*model, batch);
    ReplicateSums r(std::vector<double>(4), 0, 4);
    draw(r, *estimator_of(spec, *model), *model, batch, Key(5), {}, {}, &visited);
    CHECK(visited.missing() == doctest::Approx(1 - seen).epsilon(1e-12));
  }
  CHECK(seen < 1);
}

TEST_CASE("a nearly constant bit: few replicates find its rare value") {
  const auto* model = "bits[t=0.3,logit=-8]";  // p = 3.4e-4
  const auto exact = exactly("reinforce", model);
  for (const double cap : {2e6, 1.0}) {  // the exact variance is known, or not
    const auto m = sampled("reinforce", model, 64, 64, cap);
    CHECK(std::isfinite(m.exact_variance) == (cap > 1));
    CHECK(m.replicates == 64);
    CHECK(m.unvisited_mass == 0);
    CHECK(m.reliability_warning == "");
    CHECK(m.intervals.at("variance")[0] <= exact.variance);
    CHECK(m.intervals.at("variance")[1] >= exact.variance);
    CHECK(m.variance == doctest::Approx(exact.variance).epsilon(0.5));
  }
}

TEST_CASE("a sample that lacks rare values is reported as such") {
  const auto still = filled({{1}, 0, 64}, [](int) { return std::vector<double>{1}; });
  const auto one = filled({{0}, 0, 64}, [](int m) { return std::vector<double>{m == 7 ? 1.0 : 0.0}; });
  const auto why = [](const ReplicateStatistics& r, double unvisited, double exact) {
    Measurement m;
    m.variance = r.variance();
    m.effective_sample_size = r.effective_sample_size();
    m.unvisited_mass = unvisited;
    m.exact_variance = exact;
    return reliability_warning(m, r, true, true);
  };
  CHECK(why(still, 0, not_a_number) == "");
  CHECK(why(still, 3e-4, not_a_number) == "they show no noise, and choices of probability 0.0003 were never made");
  CHECK(why(still, 3e-4, 0.5) == "the exact variance is 0.5, and choices of probability 0.0003 were never made");
  CHECK(why(one, 0, not_a_number).find(" of 64 carry the variance") != std::string::npos);
}

TEST_CASE("cheap moments are exact by themselves, and dear ones sampled") {
  const auto of = [](const char* estimator, const char* model_spec, int replicates, int most) {
    const auto model = model_of(model_spec);
    return measure(Spec::parse(estimator), *estimator_of(estimator, *model), *model, one_example(),
                   {.replicates = replicates, .most_replicates = most}, Key(34));
  };
  const auto cheap = of("reinforce[samples=2]", "bits[bits=3,t=0.3,logit=-8]", 64, 64);
  CHECK(is_exact(cheap));
  CHECK(cheap.variance == doctest::Approx(exactly("reinforce[samples=2]", "bits[bits=3,t=0.3,logit=-8]").variance));
  CHECK(std::isnan(cheap.replicates));
  CHECK(std::isnan(cheap.bias_p_value_plain));
  CHECK(cheap.reliability_warning == "");
  const auto dear = of("reinforce[samples=2]", "bits[bits=10,t=0.3]", 64, 64);
  CHECK(!is_exact(dear));
  CHECK(dear.replicates == 64);
  CHECK(std::isnan(dear.exact_variance));
}

TEST_CASE("nearly certain attention: unmarked intervals contain the truth, and p-values are valid") {
  const struct {
    double outcome_cap;
    int least_unmarked, least_share;
  } ways[] = {{2e6, 100, 93}, {1, 70, 90}};  // with and without known exact moments (marked at level .999)
  for (const auto& [outcome_cap, least_unmarked, least_share] : ways) {
    CAPTURE(outcome_cap);
    int measured = 0, unmarked = 0, variances = 0, biases = 0, rejected = 0, contradicted = 0;
    for (const auto* model : {"bits[options=4,function=table,table_seed=8,logit=3.5;-1.1;-4.2;0.35]",
                              "bits[options=5,function=table,table_seed=3,logit=4.5;-2;0.3;-3.5;1]",
                              "bits[options=3,function=table,table_seed=21,logit=5;0.2;-2]"})
      for (const auto* estimator : {"stochastic_ad", "bitflip[samples=1]", "reinforce", "rloo[samples=2]", "self_critic"}) {
        if (!why_unsupported(Spec::parse(estimator), model_of(model)->structure()).empty()) continue;
        const auto truth = exactly(estimator, model);
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
          const auto m = sampled(estimator, model, 256, 4096, outcome_cap, Key(36) / seed);
          ++measured;
          contradicted += m.bias_p_value < 1e-12 && m.bias_p_value_plain > 0.05;
          if (!m.reliability_warning.empty()) continue;
          ++unmarked;
          const auto holds = [](const Interval& ends, double value) {
            return ends[0] <= value + 1e-12 && value <= ends[1] + 1e-12;
          };
          variances += holds(m.intervals.at("variance"), truth.variance);
          biases += holds(m.intervals.at("squared_bias"), truth.squared_bias);
          rejected += m.bias_p_value_plain < 0.01;
        }
      }
    CHECK(measured == 144);
    CHECK(contradicted == 0);
    CHECK(unmarked >= least_unmarked);
    CHECK(100 * variances >= least_share * unmarked);
    CHECK(100 * biases >= least_share * unmarked);
    CHECK(100 * rejected <= 3 * unmarked);
  }
}

TEST_CASE("an ordinary sample supports its intervals, and no more replicates are drawn") {
  int seen = 0;
  for (const auto* estimator : {"reinforce", "rloo[samples=2]", "gumbel_softmax", "exact", "straight_through"})
    for (const auto* model : {"bits[t=0.3,logit=0.4]", "bits[bits=3,options=3,t=0.3,logit=0;1;2]"}) {
      CAPTURE(estimator);
      CAPTURE(model);
      const auto m = sampled(estimator, model, 400, 100000);
      CHECK(m.reliability_warning == "");
      CHECK(m.replicates == 400);
      ++seen;
    }
  CHECK(seen == 10);
}

}  // namespace

TEST_CASE("the table of paths keeps each once, the largest of its probabilities, also one that is NaN") {
  PathProbabilities paths;
  for (int round = 0; round < 3; ++round)
    for (std::uint64_t hash = 40; hash-- > 0;)
      paths.keep({hash * 64, hash == 5 ? std::nan("") : 0.1 * round - (hash == 7 ? 0.5 : 0)});  // all in one place at first
  const auto sorted = paths.sorted();
  REQUIRE(sorted.size() == 40);
  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(sorted[i].hash == 64 * i);
    CHECK(sorted[i].probability == doctest::Approx(i == 5 || i == 7 ? 0 : 0.2));
  }
}

}  // namespace hardgrad::testing::support_test
