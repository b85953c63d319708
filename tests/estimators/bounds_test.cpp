// Multi-sample bounds and wake-sleep: exact means, known relations, closed forms on one bit, and wrong variants.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include "core/autodiff/elementwise.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/outcome_objectives.hpp"
#include "core/estimator/importance/importance.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::bounds_test {
using namespace measurement;
namespace {

using verification::Recurrent;

Target bound_of(int samples) { return "importance_bound[samples=" + std::to_string(samples) + "]"; }
Target thermodynamic(const std::vector<double>& partition) {
  return fmt::format("thermodynamic[partition={}]", fmt::join(partition, ";"));
}

constexpr TargetTerms from_posterior{.drawn_from = DrawnFrom::posterior};

const std::vector<std::string> unbiased = {"iwae_reinforce",
                                           "iwae_reinforce[samples=1]",
                                           "iwae_reinforce[samples=3]",
                                           "vimco",
                                           "vimco[mean=arithmetic]",
                                           "vimco[samples=3]",
                                           "vimco[samples=3,mean=arithmetic]",
                                           "ovis",
                                           "ovis[samples=3]",
                                           "ovis[auxiliary=2]",
                                           "ovis[variant=asymptotic,gamma=0]",
                                           "ovis[variant=asymptotic,gamma=0,samples=3]",
                                           "tvo[partitions=1,samples=2]",
                                           "tvo[partitions=1,samples=3]"};

/// A model whose posterior differs from its prior: the posterior's parameters are changed after construction.
std::unique_ptr<Model<double>> toy_of(const std::string& spec) {
  auto model = model_of(spec, true);
  for (auto& p : model->parameters())
    if (p.name == "posterior.logits")
      for (std::size_t i = 0; i < p.value.size(); ++i) p.value.flat(i) += 0.5 - 0.7 * static_cast<double>(i % 3);
  return model;
}

TEST_CASE("bounds: the exact mean is the gradient on a recurrent model, dependent and independent choices") {
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    for (const auto& spec : unbiased) {
      CAPTURE(feeding);
      CAPTURE(spec);
      const bool large = spec.find("samples=3") != std::string::npos || spec.find("auxiliary=2") != std::string::npos;
      const auto batch = large ? Recurrent<double>::batch().select({1}) : Recurrent<double>::batch();
      CHECK(bias_of(spec, model, batch) < 1e-10);
    }
  }
}

TEST_CASE("bounds: the exact mean is the gradient on all bit models") {
  for (const auto& toy : toys)
    for (const auto& spec : unbiased) {
      CAPTURE(toy);
      CAPTURE(spec);
      auto model = toy_of(toy);
      CHECK(bias_of(spec, *model) < 1e-10);
    }
}

TEST_CASE("outcomes: probabilities sum to one and average to the objectives of rows") {
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    const auto batch = Recurrent<double>::batch();
    Tape<double> tape;
    EnumerateHandler<double> handler;
    Episode<double> episode(tape, handler, batch.examples(), from_posterior);
    model.run(batch, episode);
    const Outcomes<double> outcomes(episode);
    double loss = 0, marginal = 0;
    for (int b = 0; b < 3; ++b) {
      CHECK(outcomes.of(b).size() == model.outcomes(batch)[b]);
      double p = 0, q = 0, joint = 0;
      for (const auto& z : outcomes.of(b)) {
        p += std::exp(z.log_p);
        q += std::exp(z.log_q);
        joint += std::exp(z.log_p - z.loss);
        loss += std::exp(z.log_p) * z.loss / 3;
      }
      CHECK(p == doctest::Approx(1).epsilon(1e-12));
      CHECK(q == doctest::Approx(1).epsilon(1e-12));
      marginal -= std::log(joint) / 3;
    }
    CHECK(loss == doctest::Approx(exact_reference("expected_loss", model, batch, 1e6).value).epsilon(1e-12));
    CHECK(marginal == doctest::Approx(exact_reference("marginal_likelihood", model, batch, 1e6).value).epsilon(1e-12));
  }
}

TEST_CASE("the K-sample bound and the thermodynamic objective equal the evidence lower bound in their limits") {
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    const auto batch = Recurrent<double>::batch();
    const auto elbo = exact_reference("elbo", model, batch, 1e6);
    for (const Target target : {"importance_bound[samples=1]", "thermodynamic[partition=0;1]"}) {
      const auto other = exact_reference(target, model, batch, 1e6);
      CHECK(other.value == doctest::Approx(elbo.value).epsilon(1e-12));
      CHECK(largest_difference(other.gradient, elbo.gradient) < 1e-12);
    }
  }
}

TEST_CASE("the weight of the divergence multiplies its part of the lower bound: value, gradient and every kind of estimate") {
  int estimators = 0;
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    const auto batch = Recurrent<double>::batch();
    const auto at = [&](const char* target) { return exact_reference(target, model, batch, 1e6); };
    const auto none = at("elbo[weight=0]"), some = at("elbo[weight=0.3]"), whole = at("elbo");
    CHECK(some.value == doctest::Approx(0.7 * none.value + 0.3 * whole.value).epsilon(1e-12));
    CHECK(whole.value > none.value + 1e-3);
    CHECK(largest_difference(some.gradient, finite_differences("elbo[weight=0.3]", model, batch)) < 1e-7);
    for (std::size_t i = 0; i < some.gradient.size(); ++i)
      CHECK(std::abs(some.gradient[i] - 0.7 * none.gradient[i] - 0.3 * whole.gradient[i]) < 1e-12);
    // A mutant: an estimator that ignores the weight.
    CHECK(largest_difference(mean_of("rloo[samples=2,target=elbo]", model, batch), some.gradient) > 1e-3);
    const auto one = batch.select({1});
    for (const std::string name :
         {"reinforce", "rloo", "self_critic", "soft_baseline", "moving_baseline", "nvil", "muprop", "local_expectation",
          "sum_and_sample", "unordered_set", "disarm_tree", "double_cv", "optimal_baseline", "exact"})
      for (const char* weight : {"0", "0.3"})
        for (const char* kl : {"analytic", "sampled"}) {
          const auto spec = Spec::parse(name).with("target", "elbo").with("kl_weight", weight).with("kl", kl);
          CAPTURE(spec.text);
          REQUIRE(why_unsupported(spec, model.structure()).empty());
          CHECK(bias_of(spec.text, model, one) < 1e-10);
          ++estimators;
        }
  }
  CHECK(estimators == 2 * 14 * 4);
}

TEST_CASE("bounds lie between the evidence lower bound and the likelihood, and tighten") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  const auto marginal = exact_reference("marginal_likelihood", model, batch, 1e6);
  const double bottom = exact_reference("elbo", model, batch, 1e6).value;
  double before = bottom;
  for (int samples : {2, 3, 4}) {
    const double bound = exact_reference(bound_of(samples), model, batch, 1e6).value;
    CHECK(bound < before);
    CHECK(bound > marginal.value);
    before = bound;
  }
  before = bottom;
  for (const auto& partition : std::vector<std::vector<double>>{{0, 0.4, 1}, {0, 0.1, 0.4, 0.7, 1}}) {
    const double bound = exact_reference(thermodynamic(partition), model, batch, 1e6).value;
    CHECK(bound < before);
    CHECK(bound > marginal.value);
    before = bound;
  }
  // One bit allows many samples: value and gradient converge to the likelihood's as 1 / K.
  auto bit = toy_of("bits[t=0.1,logit=0.7]");
  const auto limit = exact_reference("marginal_likelihood", *bit, one_example(), 1e6);
  double gap = 0, slope_gap = 0;
  for (int samples : {16, 32, 64, 128}) {
    const auto bound = exact_reference(bound_of(samples), *bit, one_example(), 1e6);
    const double now = bound.value - limit.value, slope_now = largest_difference(bound.gradient, limit.gradient);
    if (gap > 0) CHECK(gap / now == doctest::Approx(2).epsilon(0.1));
    if (gap > 0) CHECK(slope_gap / slope_now == doctest::Approx(2).epsilon(0.1));
    gap = now;
    slope_gap = slope_now;
  }
}

/// Two bits with one cost and different posterior and prior; every ordered tuple of K samples, computed without rows or slopes.
struct TwoBits {
  double phi[2] = {0.4, -0.7}, psi[2] = {0.9, 0.3}, t[2] = {0.3, 0.8};
  std::unique_ptr<Model<double>> model = model_of("bits[bits=2,t=0.3;0.8,logit=0.4;-0.7]", true);
  TwoBits() {
    for (auto& p : model->parameters())
      if (p.name == "posterior.logits") std::copy(psi, psi + 2, p.value.begin());
  }
  static double bernoulli(double logit, int bit) { return 1 / (1 + std::exp(bit ? -logit : logit)); }
  double q(int z) const { return bernoulli(psi[0], z & 1) * bernoulli(psi[1], z >> 1); }
  double p(int z) const { return bernoulli(phi[0], z & 1) * bernoulli(phi[1], z >> 1); }
  double f(int z) const { return std::pow((z & 1) - t[0], 2) + std::pow((z >> 1) - t[1], 2); }
  double w(int z) const { return p(z) * std::exp(-f(z)) / q(z); }
  /// d log p(z) / d phi_i
  double score(int z, int i, const double* logit) const { return (i ? z >> 1 : z & 1) - bernoulli(logit[i], 1); }
  /// E over ordered tuples of K samples from q.
  template <class F>
  double expect(int samples, F&& f) const {
    int tuples = 1;
    for (int k = 0; k < samples; ++k) tuples *= 4;
    double total = 0;
    std::vector<int> z(samples);
    for (int n = 0; n < tuples; ++n) {
      double weight = 1;
      for (int k = 0, rest = n; k < samples; ++k, rest /= 4) weight *= q(z[k] = rest % 4);
      total += weight * f(z);
    }
    return total;
  }
  double sum_w(const std::vector<int>& z) const {
    double sum = 0;
    for (int one : z) sum += w(one);
    return sum;
  }
};

TEST_CASE("independent choices: sums over steps equal sums over whole sets of choices") {
  Recurrent<double> model(false);
  const auto batch = Recurrent<double>::batch();
  Tape<double> tape;
  EnumerateHandler<double> handler;
  Episode<double> episode(tape, handler, batch.examples(), from_posterior);
  model.run(batch, episode);
  const auto parts = Outcomes<double>::parts(episode);
  REQUIRE(parts.size() == 3);
  const std::vector<double> partition = {0, 0.3, 1};
  const auto gradient_of = [&](const std::vector<const Outcomes<double>*>& sets, auto&& objective) {
    auto total = tape.constant(1, 1);
    for (const auto* set : sets) {
      std::vector<Slopes> slopes;
      for (int b = 0; b < 3; ++b) slopes.push_back(objective(set->of(b)).slopes);
      total = add(total, set->surrogate(slopes));
    }
    tape.backward(total);
    std::vector<double> gradient(model.parameters().size());
    tape.add_gradient(model.parameters(), std::span<double>(gradient));
    return gradient;
  };
  const Outcomes<double> whole(episode);
  const auto check = [&](auto&& objective, const Target& target) {
    const auto truth = exact_reference(target, model, batch, 1e6).gradient;
    CHECK(largest_difference(gradient_of({&whole}, objective), truth) < 1e-13);
    CHECK(largest_difference(gradient_of({&parts[0], &parts[1], &parts[2]}, objective), truth) < 1e-13);
  };
  check([](const auto& z) { return wake_field(z); }, "wake");
  check([&](const auto& z) { return thermodynamic_objective(z, partition); }, thermodynamic(partition));
}

TEST_CASE("explicit: the weight of an outcome, and the value and slopes of the sleep phase") {
  std::vector<Outcome> z(2);
  z[0].log_p = -0.5, z[0].log_q = -1.2, z[0].loss = 0.3;
  z[1].log_p = -1.1, z[1].log_q = -0.4, z[1].loss = 0.9;
  CHECK(z[0].log_weight() == doctest::Approx(0.4).epsilon(1e-14));
  const auto sleep = sleep_field(z);
  CHECK(sleep.value == doctest::Approx(1.2 * std::exp(-0.8) + 0.4 * std::exp(-2.0)).epsilon(1e-14));
  CHECK(sleep.slopes.log_q[0] == doctest::Approx(-std::exp(-0.8)).epsilon(1e-14));
  CHECK(sleep.slopes.log_q[1] == doctest::Approx(-std::exp(-2.0)).epsilon(1e-14));
}

TEST_CASE("the K-sample bound equals its definition over ordered tuples") {
  const TwoBits toy;
  for (int samples : {1, 2, 3, 4}) {
    const double bound = toy.expect(samples, [&](const auto& z) { return -std::log(toy.sum_w(z) / samples); });
    CHECK(exact_reference(bound_of(samples), *toy.model, one_example(), 1e6).value == doctest::Approx(bound).epsilon(1e-13));
  }
}

// Parameters of bits: the prior's logits [0, 2), the posterior's [2, 4).
TEST_CASE("the field of reweighted wake-sleep: likelihood gradient for the network, inclusive divergence for the posterior") {
  const TwoBits toy;
  const auto field = exact_reference("wake", *toy.model, one_example(), 1e6);
  const auto marginal = exact_reference("marginal_likelihood", *toy.model, one_example(), 1e6);
  CHECK(field.value == doctest::Approx(marginal.value).epsilon(1e-13));
  double evidence = 0;
  for (int z = 0; z < 4; ++z) evidence += toy.p(z) * std::exp(-toy.f(z));
  for (int i = 0; i < 2; ++i) {
    CHECK(std::abs(field.gradient[i] - marginal.gradient[i]) < 1e-14);
    double posterior = 0;  // p(bit i = 1 | y)
    for (int z = 0; z < 4; ++z)
      if (i ? z >> 1 : z & 1) posterior += toy.p(z) * std::exp(-toy.f(z)) / evidence;
    CHECK(std::abs(field.gradient[2 + i] - (TwoBits::bernoulli(toy.psi[i], 1) - posterior)) < 1e-14);
  }
}

TEST_CASE("wake_wake and wsram have the means given by their definitions at finite K") {
  const TwoBits toy;
  const double evidence = toy.expect(1, [&](const auto& z) { return toy.w(z[0]); });
  for (int samples : {2, 3}) {
    CAPTURE(samples);
    const auto k = "[samples=" + std::to_string(samples) + "]";
    const auto wake = mean_of("wake_wake" + k, *toy.model);
    const auto wsram = mean_of("wsram" + k, *toy.model);
    for (int i = 0; i < 2; ++i) {
      const auto weighted = [&](const double* logit, bool with_loss) {
        return toy.expect(samples, [&](const auto& z) {
          double sum = 0, total = 0;
          for (int one : z) {
            const double weight = with_loss ? toy.w(one) : toy.p(one) / toy.q(one);
            total += weight;
            sum += weight * toy.score(one, i, logit);
          }
          return sum / total;
        });
      };
      CHECK(std::abs(wake[i] + weighted(toy.phi, true)) < 1e-13);
      CHECK(std::abs(wake[2 + i] + weighted(toy.psi, true)) < 1e-13);
      CHECK(std::abs(wsram[i] - wake[i] - weighted(toy.phi, false)) < 1e-13);
      CHECK(std::abs(wsram[2 + i] - wake[2 + i]) < 1e-13);
    }
    // The network's part equals the K-sample bound's gradient.
    const auto bound = exact_reference(bound_of(samples), *toy.model, one_example(), 1e6);
    for (int i = 0; i < 2; ++i) CHECK(std::abs(wake[i] - bound.gradient[i]) < 1e-13);
  }
  CHECK(evidence == doctest::Approx(std::exp(-exact_reference("wake", *toy.model, one_example(), 10).value)));
}

TEST_CASE("the bias of ovis with gamma is gamma times the wake phase of the posterior") {
  const TwoBits toy;
  for (int samples : {2, 3})
    for (double gamma : {0.25, 1.0}) {
      const auto number = std::to_string(samples);
      const auto spec = "ovis[variant=asymptotic,gamma=" + std::to_string(gamma) + ",samples=" + number + "]";
      const auto mean = mean_of(spec, *toy.model);
      const auto wake = mean_of("wake_wake[samples=" + number + "]", *toy.model);
      const auto bound = exact_reference(bound_of(samples), *toy.model, one_example(), 1e6);
      for (int i = 0; i < 2; ++i) {
        CHECK(std::abs(mean[i] - bound.gradient[i]) < 1e-13);
        CHECK(std::abs(mean[2 + i] - bound.gradient[2 + i] - gamma * wake[2 + i]) < 1e-13);
      }
    }
}

TEST_CASE("the bias of self-normalised weights falls as 1 / K") {
  auto bit = toy_of("bits[t=0.1,logit=0.7]");
  for (const std::string name : {"wake_wake", "wsram", "tvo"}) {
    CAPTURE(name);
    double before = 0;
    for (int samples : {8, 16, 32, 64}) {
      const double bias = bias_of(name + "[samples=" + std::to_string(samples) + "]", *bit);
      if (before > 0) CHECK(before / bias == doctest::Approx(2).epsilon(0.15));
      before = bias;
    }
    CHECK(before > 1e-6);
    CHECK(before < 1e-2);
  }
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch().select({1});
  for (const std::string name : {"wake_wake", "wsram", "tvo"}) {
    CAPTURE(name);
    const double two = bias_of(name + "[samples=2]", model, batch);
    CHECK(two > 1e-6);
    CHECK(bias_of(name + "[samples=4]", model, batch) < 0.75 * two);
  }
}

TEST_CASE("separate learning signals and control variates lower the variance") {
  auto toy = toy_of(three_bits);
  Recurrent<double> recurrent(true);
  const auto batch = Recurrent<double>::batch().select({1});
  const std::vector<std::pair<const Model<double>*, Batch>> problems = {{toy.get(), one_example()}, {&recurrent, batch}};
  for (const auto& [model, examples] : problems) {
    const auto variance = [m = model, &e = examples](const std::string& spec) { return variance_of(spec, *m, e); };
    const double naive = variance("iwae_reinforce[samples=3]");
    CHECK(variance("vimco[samples=3]") < naive);
    CHECK(variance("vimco[samples=3,mean=arithmetic]") < naive);
    CHECK(variance("ovis[samples=3,variant=asymptotic,gamma=0]") < naive);
    CHECK(variance("wsram[samples=3]") < variance("wake_wake[samples=3]"));
  }
}

TEST_CASE("with equal weights there is no learning signal") {
  // f does not depend on the bits and the posterior equals the prior: w is constant.
  auto model = model_of("bits[bits=2,t=0.5,logit=0.7]", true);
  for (const auto* spec : {"vimco[samples=3]", "vimco[samples=3,mean=arithmetic]", "wsram[samples=3]"}) {
    CAPTURE(spec);
    const auto estimator = estimator_of(spec, *model);
    CHECK(variance_of(*estimator, *model, one_example()) < (spec[0] == 'v' ? 1.0 : 1e-30));
    CHECK(largest(mean_of(*estimator, *model, one_example())) < 1e-15);
  }
  // The derivative -1/K grad log w of the bound remains, a score of both; only the learning signal vanishes.
  const auto vimco = variance_of("vimco[samples=3]", *model);
  const auto v = 0.25 / std::pow(std::cosh(0.35), 2);  // p (1 - p)
  CHECK(vimco == doctest::Approx(4 * v / 3).epsilon(1e-12));
}

enum class Mistake { none, sign, no_weights, signal_includes_itself, weights_without_loss };

class Wrong final : public Estimator<double> {
 public:
  explicit Wrong(Mistake mistake) : mistake_(mistake) { aim("importance_bound[samples=2]"); }
  Estimate<double> estimate(const Problem<double>& problem) const override {
    ImportanceSamples<double> drawn(problem, 2);
    return drawn.estimate([&](int b, Slopes& slope) {
      const auto log_w = drawn.log_weights(b);
      const auto v = self_normalised(mistake_ == Mistake::weights_without_loss ? drawn.log_ratios(b) : log_w);
      const double bound = -log_mean_exp(log_w);
      for (int k = 0; k < 2; ++k) {
        const double baseline = -log_w[mistake_ == Mistake::signal_includes_itself ? k : 1 - k];
        slope.add_log_joint(k, -v[k]);
        slope.log_q[k] = (mistake_ == Mistake::sign ? -1 : 1) * (bound - baseline);
        if (mistake_ != Mistake::no_weights) slope.log_q[k] += v[k];
      }
      return bound;
    });
  }

 private:
  Mistake mistake_;
};

TEST_CASE("bounds: the exact mean detects wrong estimators") {
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    const auto batch = Recurrent<double>::batch();
    CHECK(bias_of(Wrong(Mistake::none), model, batch) < 1e-10);
    for (auto mistake : {Mistake::sign, Mistake::no_weights, Mistake::signal_includes_itself, Mistake::weights_without_loss}) {
      CAPTURE(static_cast<int>(mistake));
      CHECK(bias_of(Wrong(mistake), model, batch) > 1e-3);
    }
  }
}

TEST_CASE("bounds: impossible settings are rejected") {
  auto model = model_of("bits[bits=12,function=table]", true);
  CHECK_THROWS_WITH_AS(exact_reference("importance_bound[samples=2]", *model, one_example(), 1e6),
                       doctest::Contains("needs 8.39066e+06 multisets of samples"), UsageError);
  CHECK_THROWS_WITH_AS(exact_reference("wake", *model, one_example(), 1000), doctest::Contains("needs 4096 rows"), UsageError);
  auto factorised = model_of("bits[bits=30]", true);  // 60 rows, but 2^30 sets of choices
  CHECK_NOTHROW(exact_reference("wake", *factorised, one_example(), 60));
  const auto batch = one_example();
  ReferenceGradients<double> references(*factorised, batch, 1e6);
  CHECK(references.of("importance_bound[samples=2]") == nullptr);
  CHECK(references.why().find("multisets of samples") != std::string::npos);
  CHECK(references.of("elbo") != nullptr);
  CHECK_THROWS_WITH_AS(estimator_of("vimco[samples=1]", *model), doctest::Contains("samples must be at least 2"), UsageError);
  CHECK_THROWS_AS(estimator_of("tvo[beta1=0]", *model), UsageError);
  for (const std::vector<double>& partition :
       std::vector<std::vector<double>>{{1, 0.5, 1}, {0, 0.5, 2}, {0, 0.5, 0.5, 1}, {0.1, 1}, {1}, {0, 0.7, 0.3, 1}})
    CHECK_THROWS_AS(thermodynamic(partition), UsageError);
  CHECK_THROWS_AS(estimator_of("ovis[gamma=1.5]", *model), UsageError);
  CHECK_THROWS_WITH_AS(estimator_of("wake_wake", *model_of("bits")), doctest::Contains("no learned posterior"), UsageError);
}

TEST_CASE("measure: bounds are compared with their target, with others, or with a long run if the sum is too large") {
  const TwoBits toy;
  const auto spec = Spec::parse("ovis");
  const auto estimator = estimator_of("ovis", *toy.model);
  const auto exactly = measure(spec, *estimator, *toy.model, one_example(), {.method = Method::exact}, Key(1));
  CHECK(exactly.target == "importance_bound");
  CHECK(exactly.squared_bias < 1e-25);
  for (const auto* other : {"expected_loss", "marginal_likelihood", "elbo"}) CHECK(exactly.bias_against.at(other) > 1e-6);
  const auto sampled = measure(spec, *estimator, *toy.model, one_example(), {.replicates = 100, .leaf_cap = 9}, Key(1));
  CHECK(sampled.estimand == "100 x vimco[samples=2]");  // of ten pairs of four outcomes
  CHECK(std::isfinite(sampled.squared_bias));
  const auto wsram = estimator_of("wsram", *toy.model);
  const auto wake = measure(Spec::parse("wsram"), *wsram, *toy.model, one_example(), {.method = Method::exact}, Key(1));
  CHECK(wake.target == "wake");
  CHECK(wake.squared_bias > 1e-8);
}

TEST_CASE("with a nearly certain posterior, bounds and slopes are finite") {
  auto model = model_of("bits[t=0.3]", true);
  for (auto& p : model->parameters())
    if (p.name == "posterior.logits") p.value.flat(0) = 900;
  const double log_w = std::log(0.5) - 0.49;  // for the bit that is nearly always drawn
  for (const Target target : {"importance_bound[samples=3]", "thermodynamic[partition=0;0.2;1]"}) {
    const auto truth = exact_reference(target, *model, one_example(), 100);
    CAPTURE(target.text());
    CHECK(std::isfinite(truth.value));
    for (double g : truth.gradient) CHECK(std::isfinite(g));
    if (target.name() == "importance_bound") CHECK(truth.value == doctest::Approx(-log_w).epsilon(1e-12));
  }
  for (const auto* spec : {"vimco", "ovis", "tvo", "wake_wake", "wsram"})
    for (double g : mean_of(spec, *model)) CHECK(std::isfinite(g));
}

TEST_CASE("targets of one kind with different settings have different truths") {
  const TwoBits toy;
  const auto batch = one_example();
  ReferenceGradients<double> references(*toy.model, batch, 1e6);
  const auto* two = references.of("importance_bound[samples=2]");
  const auto* three = references.of("importance_bound[samples=3]");
  REQUIRE(two != nullptr);
  REQUIRE(three != nullptr);
  CHECK(two->value > three->value);
  CHECK(references.of("importance_bound[samples=2]") == two);
  CHECK(references.of("thermodynamic[partition=0;0.2;1]")->value >
        references.of("thermodynamic[partition=0;0.2;0.6;1]")->value);
}

}  // namespace
}  // namespace hardgrad::testing::bounds_test
