// Estimators on subsets: relaxations at fixed noise, sets without replacement, refusals, several columns.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/tape.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::subset_estimators_test {
namespace {

const std::string five = "subsets[options=5,picks=2,columns=2,function=pairs,logit=0.4;-0.9;0.2;1.1;-0.3]";

std::vector<double> gradient_of(const Drawn& drawn, const Model<double>& model) {
  std::vector<double> gradient(model.parameters().size());
  differentiate(drawn.estimate.surrogate, model.parameters(), gradient);
  return gradient;
}

}  // namespace

TEST_CASE("an example's gradient does not depend on the others of its batch, whose choices may have more options") {
  Batch batch;
  batch.id = {4, 7};
  batch.integers["token"] = Array<int>(Shape{2, 4});
  batch.integers["label"] = Array<int>(Shape{2, 4});
  const int tokens[] = {0, 3, 1, 4, 2, 2, 0, -1}, labels[] = {-1, 2, -1, 0, 1, -1, 1, -1};
  std::copy(std::begin(tokens), std::end(tokens), batch.integers["token"].begin());
  std::copy(std::begin(labels), std::end(labels), batch.integers["label"].begin());
  int compared = 0;
  for (const char* more : {"picks=1", "picks=3", "picks=3,share=true", "picks=3,law=plackett_luce"})
    for (const char* spec : {"dense_mixer", "path_only", "simple", "gumbel_top_k", "rloo", "unordered_set"}) {
      const auto model = make_model<double>(Spec::parse(std::string("transformer[layers=1,width=4,inner=3,") + more + "]"),
                                            {{"tokens", 5}, {"positions", 4}, {"labels", 3}}, Key(3));
      if (!why_unsupported(Spec::parse(spec), model->structure()).empty()) continue;
      CAPTURE(more);
      CAPTURE(spec);
      const auto both = gradient_of(Drawn(spec, *model, batch), *model);
      const auto first = gradient_of(Drawn(spec, *model, batch.select({0})), *model);
      const auto second = gradient_of(Drawn(spec, *model, batch.select({1})), *model);
      for (std::size_t i = 0; i < both.size(); ++i)
        CHECK(both[i] == doctest::Approx((first[i] + second[i]) / 2).epsilon(1e-9).scale(1e-3));
      ++compared;
    }
  CHECK(compared >= 14);
}

TEST_CASE("gumbel_top_k: at fixed noise the estimate is the derivative of the relaxed loss") {
  for (const char* spec : {"gumbel_top_k[samples=3]", "gumbel_top_k[temperature=0.2]", "gumbel_top_k[temperature=2]"}) {
    const auto model = model_of(five);
    const Drawn drawn(spec, *model);
    const auto gradient = gradient_of(drawn, *model);
    auto& logits = model->parameters().find("subsets.logits")->value.storage();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double at = logits[i], step = 1e-5;
      logits[i] = at + step;
      const double above = Drawn(spec, *model).estimate.loss;
      logits[i] = at - step;
      const double below = Drawn(spec, *model).estimate.loss;
      logits[i] = at;
      CHECK(gradient[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-7));
    }
  }
}

TEST_CASE("gumbel_top_k: weights sum to k, near the k largest at low temperature, and equal them with hard=true") {
  const auto model = model_of(five);
  const Drawn soft("gumbel_top_k[samples=200,temperature=0.7]", *model),
      cold("gumbel_top_k[samples=200,temperature=1e-4]", *model), hard("gumbel_top_k[samples=200,hard=true]", *model);
  const auto weights = [](const Drawn& drawn) { return drawn.estimate.episode->steps()[0].choice.weights().value(); };
  int near = 0;
  for (std::size_t c = 0; c < 400; ++c) {
    double total = 0, ones = 0;
    bool alike = true;
    for (std::size_t i = 0; i < 5; ++i) {
      const double w = weights(hard)(c, i);
      total += weights(soft)(c, i);
      ones += w;
      CHECK((w == 0 || w == 1));
      alike = alike && std::abs(weights(cold)(c, i) - w) < 1e-6;
    }
    CHECK(total == doctest::Approx(2).epsilon(1e-12));
    CHECK(ones == 2);
    near += alike;
  }
  CHECK(near >= 395);
}

TEST_CASE("without replacement: sets of subsets are unbiased, and exact where they cover all") {
  const auto one = model_of("subsets[options=5,picks=2,function=pairs,logit=0.4;-0.9;0.2;1.1;-0.3]"), columns = model_of(five);
  for (const char* spec : {"unordered_set[samples=3]", "sum_and_sample[samples=4]", "sum_and_sample[samples=3,set=sampled]"})
    CHECK(bias_of(spec, *one) < 1e-9);
  CHECK(bias_of("wor_importance[samples=4]", *model_of("subsets[options=4,picks=2,logit=0.4;-0.9;0.2;1.1]")) < 1e-9);
  for (const char* spec : {"unordered_set[samples=2,per_step=true]", "sum_and_sample[samples=4,per_step=true]"})
    CHECK(bias_of(spec, *columns) < 1e-12);
  CHECK(bias_of("kmax_marginal[k=10]", *one) < 1e-12);
  CHECK(bias_of("kmax_marginal[k=9]", *one) > 1e-4);
  for (const char* spec : {"unordered_set[samples=10]", "sum_and_sample[samples=10]"}) CHECK(variance_of(spec, *one) < 1e-24);
  CHECK(variance_of("unordered_set[samples=2]", *one) < variance_of("rloo[samples=2]", *one));
  CHECK(why_unsupported(Spec::parse("unordered_set[samples=11]"), one->structure()).find("more than the 10 outcomes") !=
        std::string::npos);
  CHECK_THROWS_WITH_AS(Drawn("unordered_set", *model_of("subsets[options=60,picks=30]")),
                       doctest::Contains("1.18265e+17 subsets, too many to visit one by one"), UsageError);
}

namespace {

/// The probability of each option among the first k drawn without replacement, by a sum over orders.
std::vector<double> drawn_in_order(const std::vector<double>& x, int k) {
  std::vector<int> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> result(x.size());
  do {
    double p = 1, left = 0;
    for (double v : x) left += std::exp(v);
    for (int i : order) {
      p *= std::exp(x[i]) / left;
      left -= std::exp(x[i]);
    }
    for (int i = 0; i < k; ++i) result[order[i]] += p;
  } while (std::next_permutation(order.begin(), order.end()));
  return result;
}

}  // namespace

TEST_CASE("implicit_mle: its mean for a linear loss is a difference of the marginals of draws in order") {
  const auto model =
      model_of("subsets[options=4,picks=2,function=linear,logit=0.4;-0.9;1.3;0.2,t=1.1;-0.7;0.2;0.5,t_spread=0]");
  const std::vector<double> x{0.4, -0.9, 1.3, 0.2}, t{1.1, -0.7, 0.2, 0.5};
  constexpr double lambda = 0.8;
  constexpr int samples = 40000;
  const auto at = [&](double by) {
    auto moved = x;
    for (std::size_t i = 0; i < x.size(); ++i) moved[i] += by * t[i];
    return drawn_in_order(moved, 2);
  };
  for (const bool central : {false, true}) {
    const Drawn drawn(
        central ? "implicit_mle[samples=40000,lambda=0.8,central=true]" : "implicit_mle[samples=40000,lambda=0.8]", *model);
    const auto gradient = gradient_of(drawn, *model);
    const auto above = at(lambda), plain = at(0), below = at(-lambda);
    double off = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double forward = (plain[i] - below[i]) / lambda, both = (above[i] - below[i]) / (2 * lambda);
      // an entry is at most 1 / lambda in size
      CHECK(std::abs(gradient[i] - (central ? both : forward)) < 4.5 / lambda / std::sqrt(samples));
      off = std::max(off, std::abs(gradient[i] - (central ? forward : both)));
    }
    CHECK(off > 4.5 / lambda / std::sqrt(samples));  // the two differ by more than noise
  }
}

TEST_CASE("implicit_mle: adaptive steps do not depend on the scale of the loss, and learn to change one entry") {
  const std::string head = "subsets[options=6,picks=3,function=linear,logit=0.4;-0.9;1.3;0.2;-0.4;0.8,t_spread=0,t=";
  const auto model = model_of(head + "1.1;-0.7;0.2;0.5;0;-1]"), steeper = model_of(head + "1100;-700;200;500;0;-1000]");
  const std::string spec = "implicit_mle[samples=50,adaptive=true,update=0.02,lambda=0.3]";
  const auto g = gradient_of(Drawn(spec, *model), *model), steep = gradient_of(Drawn(spec, *steeper), *steeper);
  double largest = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    CHECK(steep[i] == doctest::Approx(1000 * g[i]).epsilon(1e-12));
    largest = std::max(largest, std::abs(g[i]));
  }
  CHECK(largest > 0.01);
  const auto estimator = estimator_of(spec, *model);
  const auto entries = [&](int seed) {
    Tape<double> tape;
    KeyedRandomness random{Key(seed)};
    const auto batch = one_example();
    auto estimate = estimator->draw({tape, *model, batch, random});
    estimator->learn(estimate);
    return estimate.observed.at(0);
  };
  const double first = entries(0);
  CHECK(first < 0.8);
  for (int step = 1; step < 300; ++step) entries(step);
  double mean = 0;
  for (int step = 300; step < 340; ++step) mean += entries(step) / 40;
  CHECK(mean == doctest::Approx(1).epsilon(0.15));
  const auto again = estimator_of(spec, *model);
  again->restore(estimator->state());
  CHECK(again->state() == estimator->state());
}

TEST_CASE("k by column, both laws: unbiased estimators are, relaxed weights sum to each k") {
  const std::string options = "options=4,picks=1;3,columns=2,function=pairs,logit=0.4;-0.9;0.2;1.1";
  for (const std::string law : {"conditional_poisson", "plackett_luce"}) {
    const auto model = model_of("subsets[" + options + ",law=" + law + "]");
    for (const char* spec : {"reinforce", "rloo[samples=2]", "optimal_baseline[samples=2]", "exact", "sparse_mixer[order=2]",
                             "unordered_set[samples=3]", "unordered_set[samples=2,per_step=true]", "sum_and_sample[samples=3]"})
      CHECK(bias_of(spec, *model) < 1e-12);
    CHECK(bias_of("simple", *model) > 1e-3);
    for (const char* spec : {"gumbel_top_k[samples=20]", "gumbel_top_k[samples=20,hard=true]", "implicit_mle[samples=20]"}) {
      const Drawn drawn(spec, *model);
      const auto w = drawn.estimate.episode->steps()[0].choice.weights().value();
      for (std::size_t c = 0; c < w.rows; ++c)
        CHECK(std::accumulate(w.row(c), w.row(c) + 4, 0.0) == doctest::Approx(c % 2 ? 3 : 1).epsilon(1e-12));
      for (double g : gradient_of(drawn, *model)) CHECK(std::isfinite(g));
    }
  }
}

TEST_CASE("gumbel_top_k: the k largest perturbed logits are Plackett-Luce subsets, not the conditional Poisson ones") {
  const std::string options = "subsets[options=5,picks=2,function=linear,logit=2;-2;1;0.3;-1,t=1;0;0;0;0,t_spread=0,law=";
  constexpr int samples = 20000;
  for (const std::string law : {"plackett_luce", "conditional_poisson"}) {
    const auto model = model_of(options + law + "]");
    const Drawn drawn("gumbel_top_k[hard=true,samples=20000]", *model);
    const auto loss = drawn.estimate.episode->costs()[0].loss.value();
    double squares = 0;
    for (std::size_t r = 0; r < samples; ++r) squares += std::pow(loss.data[r] - drawn.estimate.loss, 2);
    const double error = 4.5 * std::sqrt(squares) / samples;
    const double off = std::abs(drawn.estimate.loss - measurement::exact_reference({}, *model, one_example(), 1e6).value);
    CHECK((off < error) == (law == "plackett_luce"));
  }
}

TEST_CASE("simple: no variance and no bias where the loss is linear, as for enumeration") {
  const auto linear = model_of("subsets[options=6,picks=3,function=linear,logit=0.4;-0.9;0.2;1.1;-0.3;2]");
  CHECK(bias_of("simple", *linear) < 1e-12);
  CHECK(variance_of("simple", *linear) < 1e-24);
  const auto pairs = model_of(five);
  CHECK(bias_of("simple", *pairs) > 1e-3);
  CHECK(bias_of("rloo[samples=2]", *pairs) < 1e-12);
  CHECK(variance_of("rloo[samples=2]", *pairs) < variance_of("reinforce[samples=2]", *pairs));
}

TEST_CASE("a subset of all options, or of one, is no choice or a category") {
  const auto all = model_of("subsets[options=3,picks=3]");
  CHECK(variance_of("reinforce", *all) == 0);
  CHECK(variance_of("simple", *all) == 0);
  const auto one = model_of("subsets[options=1,picks=1]");
  CHECK(variance_of("reinforce", *one) == 0);
  for (const char* spec : {"gumbel_top_k", "gumbel_top_k[hard=true]", "implicit_mle", "implicit_mle[adaptive=true]"}) {
    const Drawn drawn(spec, *all);
    for (int i = 0; i < 3; ++i) CHECK(drawn.estimate.episode->steps()[0].choice.weights().value()(0, i) == 1);
    for (double g : gradient_of(drawn, *all)) CHECK(g == 0);
  }
  CHECK_THROWS_WITH_AS(model_of("subsets[options=3,picks=4]"), doctest::Contains("picks=4 is more than options=3"), UsageError);
  CHECK_THROWS_AS(model_of("subsets[picks=0]"), UsageError);
  const auto sure = model_of("subsets[options=4,picks=2,logit=700;-700;700;-700]");
  CHECK(variance_of("rloo[samples=2]", *sure) == 0);
  CHECK(bias_of("simple", *sure) < 1e-12);
}

}  // namespace hardgrad::testing::subset_estimators_test
