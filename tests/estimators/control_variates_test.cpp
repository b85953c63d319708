// Control variates built from relaxations and derivatives of the loss.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/gumbel.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/relaxation/differentiated_samples.hpp"
#include "core/estimator/relaxation/relaxed_control.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "experiments/training/trainer.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::control_variates_test {
using namespace measurement;
using namespace tasks;
using namespace training;
namespace {

using verification::Recurrent;

void check_categorical(const std::string& spec) {
  CAPTURE(spec);
  const bool many = spec.find("samples=3") != std::string::npos;
  for (bool feeding : {false, true}) {
    CAPTURE(feeding);
    Recurrent<double> model(feeding);
    const auto batch = many ? Recurrent<double>::batch().select({1}) : Recurrent<double>::batch();
    auto estimator = estimator_of(spec, model);
    perturb_state(*estimator);
    CHECK(bias_of(*estimator, model, batch) < 1e-10);
  }
  for (const auto* toy : toys) {
    CAPTURE(toy);
    const auto model = model_of(toy);
    auto estimator = estimator_of(spec, *model);
    perturb_state(*estimator);
    CHECK(bias_of(*estimator, *model, one_example()) < 1e-10);
  }
}

TEST_CASE("muprop is unbiased, with dependent and independent choices") {
  for (const auto* spec : {"muprop", "muprop[samples=2]", "muprop[reward_to_go=true]", "muprop[level=0.4,slope=1.3]",
                           "muprop[learned=true]", "muprop[learned=true,samples=2,reward_to_go=true]"})
    check_categorical(spec);
}

TEST_CASE("the variance of muprop on one bit equals the closed form, and is zero for linear f") {
  for (double phi : {-2.5, 0.0, 1.2})
    for (double t : {0.45, 0.1}) {
      const double p = 1 / (1 + std::exp(-phi)), v = p * (1 - p);
      const auto model = model_of(fmt::format("bits[t={},logit={}]", t, phi));
      CHECK(variance_of("muprop", *model) ==
            doctest::Approx(v * (std::pow(1 - p, 5) + std::pow(p, 5)) - v * v * (1 - 2 * p) * (1 - 2 * p)).epsilon(1e-10));
    }
  const auto linear = model_of("bits[bits=3,options=3,function=linear,logit=0.2;-0.1;0.4]");
  CHECK(variance_of("muprop", *linear) < 1e-28);
}

/// muprop for dependent choices in its simplest form (own term only), right or with one mistake in the compensation.
enum class Compensation { given_the_prefix, none, mean_field };
struct PlainMuProp final : Estimator<double> {
  Compensation compensation;
  explicit PlainMuProp(Compensation c) : compensation(c) {}
  Estimate<double> estimate(const Problem<double>& problem) const override {
    auto& tape = problem.tape;
    ExpectedHandler<double> expected;
    Sampled<double> mean(problem, 1, expected), sampled(problem, 1);
    tape.backward(mean.path());  // one example
    std::vector<std::vector<double>> slopes;
    for (const auto& step : mean.episode().steps()) {
      const auto slope = tape.gradient(step.choice.weights());
      slopes.emplace_back(slope.data, slope.data + slope.size());
    }
    auto surrogate = sampled.path();
    std::vector<std::vector<double>> signal;
    for (int t = 0; t < sampled.steps(); ++t) {
      const auto& step = sampled.episode().steps()[t];
      signal.push_back({sampled.losses()[0] - slopes[t][step.choice.option()[0]]});
      const auto& at = compensation == Compensation::mean_field ? mean.episode().steps()[t] : step;
      if (compensation != Compensation::none)
        surrogate =
            add(surrogate, weighted_sum(probabilities(at.question.categories().log_p()), std::span<const double>(slopes[t])));
    }
    surrogate = add(surrogate, sampled.score(signal));
    return {.surrogate = surrogate, .episode = sampled.release()};
  }
};

TEST_CASE("muprop compensated at the mean-field run, or not at all, is detected if choices feed later ones") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch().select({0});
  CHECK(bias_of(PlainMuProp(Compensation::given_the_prefix), model, batch) < 1e-10);
  CHECK(bias_of(PlainMuProp(Compensation::none), model, batch) > 1e-3);
  CHECK(bias_of(PlainMuProp(Compensation::mean_field), model, batch) > 1e-3);
}

/// muprop on one bit with (b - t)^2, with its compensating term f'(p) grad p removed.
struct Uncompensated final : Estimator<double> {
  std::unique_ptr<Estimator<double>> inner;
  double slope = 0;
  Estimate<double> estimate(const Problem<double>& problem) const override {
    auto estimate = inner->draw(problem);
    auto p = sigmoid(problem.tape.parameter(*problem.model.parameters().begin()));
    estimate.surrogate = add(estimate.surrogate, sum(p, -slope));
    return estimate;
  }
};

TEST_CASE("muprop without its compensating term is detected") {
  const auto model = model_of("bits[t=0.3,logit=0.7]");
  Uncompensated twin;
  twin.inner = estimator_of("muprop", *model);
  CHECK(bias_of(twin, *model, one_example()) < 1e-10);
  twin.slope = 2 * (1 / (1 + std::exp(-0.7)) - 0.3);
  CHECK(bias_of(twin, *model, one_example()) > 1e-3);
}

TEST_CASE("double_cv is unbiased, with dependent and independent choices") {
  for (const auto* spec : {"double_cv[samples=2]", "double_cv[samples=3]", "double_cv[samples=2,reward_to_go=true]"})
    check_categorical(spec);
}

TEST_CASE("double_cv is exact for linear f, leave-one-out at alpha = 0, and better than that on a sum of squares") {
  const auto linear = model_of("bits[bits=3,options=3,function=linear,logit=0.2;-0.1;0.4]");
  CHECK(variance_of("double_cv[samples=2,alpha=-1]", *linear) < 1e-28);
  const auto square = model_of("bits[bits=4,t=0.45,logit=0.3]");
  const double plain = variance_of("rloo[samples=2]", *square);
  CHECK(variance_of("double_cv[samples=2]", *square) == doctest::Approx(plain).epsilon(1e-10));
  double best = plain;
  for (double alpha : {-0.01, -0.02, -0.05, -0.1, -0.2})
    best = std::min(best, variance_of(fmt::format("double_cv[samples=2,alpha={}]", alpha), *square));
  CHECK(best < 0.97 * plain);
}

/// Two samples of one bit: a term with mean 0 built from the other sample, or wrongly from the same sample. `taylor`: the
/// second control variate of double_cv (alpha = 1); otherwise a Stein term A h of h(z) = z in the baseline.
struct Own final : Estimator<double> {
  bool taylor, own;
  Own(bool t, bool o) : taylor(t), own(o) {}
  Estimate<double> estimate(const Problem<double>& problem) const override {
    DifferentiatedSamples<double> samples(problem, 2);
    const auto& choices = samples.choices();
    const auto score = choices.score();
    const auto of = [&](const AtLogits& x) { return own ? x : mean_of_others(x, 2); };  // with two samples, the other one
    const auto signal = leave_one_out(spread(samples.layout(), samples.run().losses()), 2);
    AtLogits g = signal * score;
    if (taylor) {
      const auto slope = of(samples.slope());
      g += dot(slope, score) * score - through_softmax(choices.p(), slope);
    } else {
      auto second = choices.zeros();
      for (std::size_t i = 1; i < second.value.size(); i += 2) second.value[i] = 1;
      g += dot(of(score), second) * score;  // -(p - z)
    }
    return {.surrogate = samples.surrogate(g), .episode = samples.run().release()};
  }
};

TEST_CASE("control variates that depend on their own sample are detected") {
  const auto model = model_of("bits[t=0.3,logit=0.7]");
  for (bool taylor : {false, true}) {
    CHECK(bias_of(Own(taylor, false), *model, one_example()) < 1e-10);
    CHECK(bias_of(Own(taylor, true), *model, one_example()) > 1e-3);
  }
}

/// Two choices need a quadrature in two dimensions, which takes seconds: not every variant runs on all toys.
void check_continuous(const std::string& spec, std::vector<const char*> toys, std::vector<bool> feedings) {
  CAPTURE(spec);
  toys.push_back("bits[logit=2]");
  for (const auto* toy : toys) {
    CAPTURE(toy);
    const auto model = model_of(toy);
    auto estimator = estimator_of(spec, *model);
    perturb_state(*estimator);
    CHECK(bias_of(*estimator, *model, one_example()) < 1e-9);
  }
  for (bool feeding : feedings) {
    CAPTURE(feeding);
    Recurrent<double> model(feeding, Key(5), 2);
    auto estimator = estimator_of(spec, model);
    perturb_state(*estimator);
    CHECK(bias_of(*estimator, model, Recurrent<double>::batch(2).select({1})) < 1e-9);
  }
}
const char* const shared = "bits[bits=2,t=0.6;0.51,shared_logit=true,logit=-1]";

TEST_CASE("rebar is unbiased: quadrature over its noise, dependent and independent choices") {
  check_continuous("rebar[coupled=true]", {shared, table_bits}, {true});
  check_continuous("rebar[coupled=true,reward_to_go=true]", {}, {false});
  check_continuous("rebar", {}, {});
}

TEST_CASE("relax is unbiased: quadrature over its noise, dependent and independent choices") {
  check_continuous("relax[relaxed_model=false]", {table_bits}, {});
  check_continuous("relax[relaxed_model=false,reward_to_go=true]", {}, {true});
  check_continuous("relax", {}, {true});
}

TEST_CASE("relax needs weights over options only for the relaxed network's loss") {
  Structure black_box;
  black_box.sites = {{.name = "word", .options = 3}};
  black_box.sites[0].kind.relaxable = false;
  CHECK(why_unsupported(Spec::parse("relax"), black_box) ==
        "needs categories that can be weights over options; site `word` takes options only: take relax[relaxed_model=false]");
  CHECK(why_unsupported(Spec::parse("relax[relaxed_model=false]"), black_box) == "");
}

TEST_CASE("rebar without its control is REINFORCE") {
  for (const auto* toy : {"bits[logit=2,t=0.3]", "bits[t=0.45]"}) {
    const auto model = model_of(toy);
    CHECK(variance_of("rebar[eta=0,coupled=true]", *model) == doctest::Approx(variance_of("reinforce", *model)).epsilon(1e-9));
  }
}

TEST_CASE("the variance of rebar on one bit, for both ways to draw the noise given the choice") {
  const auto model = model_of("bits[t=0.45]");
  CHECK(variance_of("rebar", *model) == doctest::Approx(2.265e-2).epsilon(2e-4));
  // Coupled, by the midpoint rule: p = 1/2, u the noise, s = b - p, z~ = -log(1/v - 1 ...) held in v.
  double mean = 0, square = 0;
  const int n = 400000;
  for (int i = 0; i < n; ++i) {
    const double u = (i + 0.5) / n, b = u > 0.5, z = std::log(u / (1 - u)), w = 1 / (1 + std::exp(-2 * z));
    const double share = b == 1 ? 1 - 0.5 / u : 1 - 0.5 / (1 - u);
    const double g =
        ((b - 0.45) * (b - 0.45) - (w - 0.45) * (w - 0.45)) * (b - 0.5) + 2 * (w - 0.45) * 2 * w * (1 - w) * (1 - share);
    mean += g / n;
    square += g * g / n;
  }
  CHECK(mean == doctest::Approx(0.025).epsilon(1e-6));
  CHECK(variance_of("rebar[coupled=true]", *model) == doctest::Approx(square - mean * mean).epsilon(1e-6));
}

/// Largest deviation of a sampled mean from the exact gradient, in standard errors.
double standard_errors(const std::string& spec, const Model<double>& model, const Batch& batch, int count) {
  auto estimator = estimator_of(spec, model);
  perturb_state(*estimator);
  const auto truth = exact_reference({}, model, batch, 1e6).gradient;
  std::vector<double> sum(truth.size()), squares(truth.size());
  Tape<double> tape;
  for (int n = 0; n < count; ++n) {
    tape.clear();
    KeyedRandomness random(Key(23) / static_cast<std::uint64_t>(n));
    tape.backward(estimator->draw({tape, model, batch, random}).surrogate);
    std::vector<double> g(truth.size());
    tape.add_gradient(model.parameters(), std::span<double>(g));
    for (std::size_t i = 0; i < g.size(); ++i) {
      sum[i] += g[i];
      squares[i] += g[i] * g[i];
    }
  }
  double worst = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double mean = sum[i] / count, variance = squares[i] / count - mean * mean;
    if (variance > 1e-20) worst = std::max(worst, std::abs(mean - truth[i]) / std::sqrt(variance / count));
  }
  return worst;
}

TEST_CASE("rebar and relax are unbiased with Gumbel choices, within 4.5 standard errors") {
  for (const auto* spec : {"rebar[coupled=true]", "rebar[samples=2]", "relax[relaxed_model=false]", "relax[samples=2]"}) {
    CAPTURE(spec);
    const auto categories = model_of("bits[bits=2,options=3,t=0.3,logit=0.2;-0.1;0.4]");
    CHECK(standard_errors(spec, *categories, one_example(), 20000) < 4.5);
    for (bool feeding : {false, true}) {
      CAPTURE(feeding);
      Recurrent<double> model(feeding);
      CHECK(standard_errors(spec, model, Recurrent<double>::batch(), 10000) < 4.5);
    }
  }
}

/// The known control c(w) = (w - t)^2 on one bit, right or with one mistake.
enum class Mistake { none, sign, no_path, uncoupled };
struct Twin final : Estimator<double> {
  Mistake mistake;
  double t;
  Twin(Mistake m, double target) : mistake(m), t(target) {}
  bool exchangeable() const override { return false; }
  Estimate<double> estimate(const Problem<double>& problem) const override {
    RelaxedRun<double> run(problem, 1, true, {});
    auto choices = run.choices();
    if (mistake == Mistake::uncoupled) {  // noise independent of b
      const Draw elsewhere{.index = 7};
      int other = 0;
      const double log_p[] = {std::log(choices.p.value[0]), std::log(choices.p.value[1])};
      perturb({2, choices.layout->options, log_p}, {&elsewhere, 1}, problem.random, {&other, 1}, choices.given.value);
    }
    const auto weights = choices.weights(0.5);
    const double w = weights.value[1], c = (w - t) * (w - t);
    const AtLogits slope{choices.layout, {0, 2 * (w - t)}};
    auto signal = run.losses(Credit::whole);
    for (double& f : signal.value) f += mistake == Mistake::sign ? c : -c;
    const double eta = mistake == Mistake::no_path ? 0 : 1;
    const auto g = choices.gradient(0.5, signal, eta, RelaxedChoices::slope_of(weights, slope));
    return {.surrogate = run.surrogate(g), .episode = run.run().release()};
  }
};

TEST_CASE("a control variate with a wrong sign, without its path derivative or with another choice's noise is detected") {
  const auto model = model_of("bits[t=0.3,logit=0.7]");
  CHECK(bias_of(Twin(Mistake::none, 0.3), *model, one_example()) < 1e-9);
  for (auto mistake : {Mistake::sign, Mistake::no_path, Mistake::uncoupled}) {
    CAPTURE(static_cast<int>(mistake));
    CHECK(bias_of(Twin(mistake, 0.3), *model, one_example()) > 1e-3);
  }
}

/// The exact mean of own_loss's gradient in one of the estimator's own numbers.
double mean_own_gradient(Estimator<double>& estimator, int which, const Model<double>& model, const Batch& batch) {
  struct OwnGradient final : Estimator<double> {  // returns the own loss as if it depended on the model's parameters
    Estimator<double>* inner;
    int which;
    bool exchangeable() const override { return inner->exchangeable(); }
    Estimate<double> estimate(const Problem<double>& p) const override {
      auto estimate = inner->draw({p.tape, p.model, p.batch, p.random, true});
      p.tape.backward(estimate.own_loss);
      std::vector<double> g(inner->own_parameters().size());
      p.tape.add_gradient(inner->own_parameters(), std::span<double>(g));
      estimate.surrogate = sum(p.tape.parameter(*p.model.parameters().begin()), g[which]);
      return estimate;
    }
  };
  OwnGradient own;
  own.inner = &estimator;
  own.which = which;
  return exact_moments(own, model, batch, {std::vector<double>(exact_reference({}, model, batch, 1e6).gradient.size())}, 1e6)
      .mean[0];
}

/// Compares the mean of own_loss's gradient with finite differences of the exact E|g|^2 in the estimator's own parameters. For
/// two options with one logit, a gradient (-g, g) at the site's two has twice the squared norm of the parameter's g.
void check_own_gradient(const std::string& spec, const Model<double>& model, double tolerance, double factor = 2) {
  CAPTURE(spec);
  auto estimator = estimator_of(spec, model);
  const auto batch = one_example();
  const auto truth = exact_reference({}, model, batch, 1e6);
  const auto second_moment = [&] {
    const auto m = exact_moments(*estimator, model, batch, truth.of_example, 1e6);
    double norm = 0;
    for (double g : m.mean) norm += g * g;
    return m.trace + norm;
  };
  int which = 0;
  for (auto& parameter : estimator->own_parameters())
    for (auto& value : parameter.value) {
      const double expected = mean_own_gradient(*estimator, which++, model, batch), at = value, h = 1e-4;
      value = at + h;
      const double above = second_moment();
      value = at - h;
      const double below = second_moment();
      value = at;
      CAPTURE(parameter.name);
      CHECK(expected == doctest::Approx(factor * (above - below) / (2 * h)).epsilon(tolerance));
    }
}

TEST_CASE("the learned parts of muprop descend the mean squared signal") {
  const double t = 0.3, phi = 0.7, p = 1 / (1 + std::exp(-phi)), a = 0.8, b = 1.3, C = 0.1;
  const auto model = model_of("bits[t=0.3,logit=0.7]");
  auto estimator = estimator_of("muprop[level=0.8,slope=1.3,learned=true,hidden=2]", *model);
  double in_a = 0, in_b = 0, in_C = 0;  // derivatives of E s^2, s = f - a f(m) - b f'(m) (z - m) - C
  for (int z : {0, 1}) {
    const double prob = z ? p : 1 - p, at_mean = (p - t) * (p - t), linear = 2 * (p - t) * (z - p);
    const double s = (z - t) * (z - t) - a * at_mean - b * linear - C;
    in_a -= 2 * prob * s * at_mean;
    in_b -= 2 * prob * s * linear;
    in_C -= 2 * prob * s;
  }
  int which = 0, found = 0;
  for (auto& parameter : estimator->own_parameters()) {
    if (parameter.name.find("baseline.out") == 0)  // C: its bias alone
      std::fill(parameter.value.begin(), parameter.value.end(), parameter.name == "baseline.out.bias" ? C : 0);
  }
  for (auto& parameter : estimator->own_parameters()) {
    const double expected = parameter.name == "muprop.level"        ? in_a
                            : parameter.name == "muprop.slope"      ? in_b
                            : parameter.name == "baseline.out.bias" ? in_C
                                                                    : std::nan("");
    if (expected == expected) {
      CAPTURE(parameter.name);
      CHECK(mean_own_gradient(*estimator, which, *model, one_example()) == doctest::Approx(expected).epsilon(1e-10));
      ++found;
    }
    which += static_cast<int>(parameter.value.size());
  }
  CHECK(found == 3);
}

TEST_CASE("the learned controls minimise the second moment of the gradient") {
  const auto one = model_of("bits[t=0.3,logit=0.7]"), two = model_of("bits[bits=2,t=0.3;0.6,logit=0.7;-0.3]");
  check_own_gradient("rebar[eta=0.7,temperature=0.8,coupled=true]", *one, 1e-5);
  check_own_gradient("relax[hidden=2,relaxed_model=false]", *one, 1e-5);
  check_own_gradient("relax[hidden=2]", *one, 1e-5);
  check_own_gradient("double_cv[samples=3,alpha=0.3]", *two, 1e-7);
  check_own_gradient("rodeo[samples=3,hidden=2,alpha=0.3,beta=-0.4]", *two, 1e-7);
  const auto categories = model_of("bits[bits=2,options=3,t=0.3,logit=0.2;-0.1;0.4]");
  check_own_gradient("double_cv[samples=2,alpha=0.3]", *categories, 1e-7, 1);
  check_own_gradient("rodeo[samples=2,hidden=2,alpha=0.3,beta=-0.4]", *categories, 1e-7, 1);
}

/// After 2000 steps of the trainer, with each estimator's learning rates.
struct Trained {
  Training<double> training;
  double before;
  Trained(const std::string& model, const std::string& estimator, const std::vector<double>& rates) {
    TrainSettings settings;
    settings.batch = 1;
    settings.optimizer.learning_rate = 1e-4;
    const RunKeys keys{Key(1), Key(2), Key(3)};
    training =
        prepare<double>(make_task(Spec::parse("bits"), Key(4)), Spec::parse(model), Spec::parse(estimator), settings, keys);
    before = variance();
    for (double rate : rates) {
      training.own_optimizer = make_optimizer<double>({.rule = UpdateRule::adam, .learning_rate = rate},
                                                      training.estimator->own_parameters().size());
      settings.steps += 2000;
      train(training, settings, keys);
    }
  }
  double variance() const { return variance_of(*training.estimator, *training.model, one_example()); }
  double variance(const std::string& other) const { return variance_of(other, *training.model); }
};

TEST_CASE("trained on bits, the learned controls have less variance than leave-one-out at the same parameters") {
  const std::vector<double> decayed = {1e-2, 1e-2, 1e-3, 1e-4}, constant = {1e-2, 1e-2};
  const auto check = [](const std::string& model, const std::string& estimator, const std::vector<double>& rates,
                        double share) {
    CAPTURE(model);
    CAPTURE(estimator);
    const Trained trained(model, estimator, rates);
    CHECK(trained.variance() < share * trained.variance("rloo[samples=2]"));
    CHECK(trained.variance() < trained.before);
  };
  check("bits[t=0.499]", "relax[relaxed_model=false]", decayed, 0.3);
  check("bits[t=0.499]", "rebar", decayed, 0.5);
  check("bits[t=0.1]", "rebar", constant, 0.05);
  check("bits[t=0.1,logit=2]", "rebar", constant, 0.05);
  check("bits[t=0.1]", "relax", constant, 0.1);
  check("bits[bits=4,t=0.45,logit=0.3]", "double_cv[samples=2]", constant, 0.9);
  check("bits[bits=4,t=0.45,logit=0.3]", "rodeo[samples=2]", constant, 0.5);
}

TEST_CASE("rodeo is unbiased, with dependent and independent choices") {
  for (const auto* spec : {"rodeo[samples=2,hidden=5]", "rodeo[samples=3,hidden=5]"}) check_categorical(spec);
}

TEST_CASE("untrained rodeo is leave-one-out") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  CHECK(variance_of("rodeo[samples=2]", model, batch) ==
        doctest::Approx(variance_of("rloo[samples=2]", model, batch)).epsilon(1e-10));
}

}  // namespace
}  // namespace hardgrad::testing::control_variates_test
