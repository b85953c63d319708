// Pathwise estimators by relaxations: their biases are known, and so are some variances.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/estimator/relaxation/relaxation.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/logistic.hpp"

namespace hardgrad::testing::relaxed_test {
using namespace measurement;
namespace {

using verification::Recurrent;

/// One bit with f(x) = (x - t)^2.
struct OneBit {
  double phi, t;
  double p = 1 / (1 + std::exp(-phi)), v = p * (1 - p), gradient = v * (1 - 2 * t);
  std::unique_ptr<Model<double>> model = model_of(fmt::format("bits[t={},logit={}]", t, phi));
  Moments moments(const std::string& spec) const {
    return exact_moments(*estimator_of(spec, *model), *model, one_example(), {{gradient}}, 1e6);
  }
  double slope(double x) const { return 2 * (x - t); }
};
const double logits[] = {-2.5, -0.4, 0.0, 1.2, 3.0};

TEST_CASE("the bias of straight_through on one bit is v (2p - 1)") {
  for (double phi : logits)
    for (double t : {0.45, 0.1}) {
      const OneBit bit{phi, t};
      CHECK(bit.moments("straight_through").mean[0] - bit.gradient == doctest::Approx(bit.v * (2 * bit.p - 1)).epsilon(1e-12));
      CHECK(bit.moments("straight_through[samples=3]").mean[0] == doctest::Approx(bit.moments("straight_through").mean[0]));
    }
}

TEST_CASE("straight_through on one bit with two temperatures: one for the draw, the other for the derivative") {
  for (double phi : logits)
    for (const auto& [backward, forward] : {std::pair{0.5, 1.0}, {1.0, 2.0}, {1.7, 0.4}}) {
      const OneBit bit{phi, 0.3};
      const double p = sigmoid(phi / forward), w = sigmoid(phi / backward), jacobian = w * (1 - w) / backward;
      const auto moments =
          bit.moments(fmt::format("straight_through[temperature={},forward_temperature={}]", backward, forward));
      const double mean = jacobian * (p * bit.slope(1) + (1 - p) * bit.slope(0));
      CHECK(moments.mean[0] == doctest::Approx(mean).epsilon(1e-12));
      CHECK(moments.trace == doctest::Approx(p * (1 - p) * std::pow(2 * jacobian, 2)).epsilon(1e-10));
    }
}

TEST_CASE("perturbed on one bit: with x the mean of M draws, the derivative of x is x (1 - p) / sigma") {
  for (double phi : logits)
    for (const auto& [draws, sigma] : {std::pair{1, 1.0}, {2, 1.0}, {5, 1.0}, {3, 0.6}}) {
      CAPTURE(phi);
      CAPTURE(draws);
      const OneBit bit{phi, 0.3};
      const double p = sigmoid(phi / sigma);  // E[x f'(x)] = 2 (E[x^2] - t p)
      const double square = p * p + p * (1 - p) / draws, mean = 2 * (1 - p) / sigma * (square - 0.3 * p);
      CHECK(std::abs(bit.moments(fmt::format("perturbed[draws={},sigma={}]", draws, sigma)).mean[0] - mean) < 1e-10);
    }
}

TEST_CASE("straight_through is exact if f is linear in each of independent choices") {
  for (const auto* spec :
       {"bits[bits=3,options=3,function=linear,logit=0.2;-0.1;0.4]", "bits[bits=2,function=linear,logit=0.3;-0.8]"}) {
    const auto model = model_of(spec);
    CHECK(bias_of("straight_through", *model) < 1e-10);
  }
}

TEST_CASE("reinmax on one bit is unbiased for quadratic f, and has the closed-form variance") {
  for (double phi : logits)
    for (double t : {0.45, 0.1}) {
      const OneBit bit{phi, t};
      const auto moments = bit.moments("reinmax");
      const double f0 = bit.slope(0), f1 = bit.slope(1);
      CHECK(std::abs(moments.mean[0] - bit.gradient) < 1e-14);
      CHECK(
          moments.trace ==
          doctest::Approx(bit.v / 4 * ((1 - bit.p) * f1 * f1 + bit.p * f0 * f0) - bit.gradient * bit.gradient).epsilon(1e-10));
    }
  const auto cubic = model_of("bits[function=norm,power=3,t=-0.3,logit=1]");  // (x + 0.3)^3: the trapezoid rule is inexact
  CHECK(bias_of("reinmax", *cubic) > 1e-3);
}

TEST_CASE("reinmax_rao on one bit has the mean and variance of its equation") {
  for (double phi : {-0.4, 1.2})
    for (double temperature : {0.5, 1.3}) {
      const OneBit bit{phi, 0.3};
      double mean = 0, square = 0, averaged = 0;  // squares with one draw of the noise, and with its mean
      for (bool one : {false, true}) {
        const double p = one ? bit.p : 1 - bit.p, theta = std::log(one ? (1 + bit.p) / (1 - bit.p) : bit.p / (2 - bit.p));
        const auto moment = [&](double from, double to, int power) {
          return over_logistic(theta, from, to, [&](double z) { return std::pow(bump(z, temperature), power); });
        };
        const double from = one ? 0 : -60, to = one ? 60 : 0, side = (1 + p) / 2;  // the noise on the choice's side
        const double first = moment(from, to, 1) / side, second = moment(from, to, 2) / side, slope = bit.slope(one);
        mean += p * slope * (2 * first - bit.v / 2);
        square += p * slope * slope * (4 * second - 2 * first * bit.v + bit.v * bit.v / 4);
        averaged += p * slope * slope * (4 * first * first - 2 * first * bit.v + bit.v * bit.v / 4);
      }
      for (int m : {1, 10}) {
        const auto moments = bit.moments(fmt::format("reinmax_rao[temperature={},rao_samples={}]", temperature, m));
        CHECK(moments.mean[0] == doctest::Approx(mean).epsilon(1e-8));
        CHECK(moments.trace == doctest::Approx(averaged + (square - averaged) / m - mean * mean).epsilon(1e-7));
      }
      CHECK(std::abs(mean - bit.gradient) > 1e-3);
    }
}

TEST_CASE("gumbel_softmax on one bit has the mean of the relaxed loss's derivative, and its bias falls with the temperature") {
  for (double phi : {-0.4, 1.2}) {
    const OneBit bit{phi, 0.3};
    double last = 1;
    for (double temperature : {0.2, 0.1, 0.05, 0.02, 0.01}) {
      const auto mean = bit.moments(fmt::format("gumbel_softmax[temperature={}]", temperature)).mean[0];
      const double expected = over_logistic(
          phi, -60, 60, [&](double z) { return bit.slope(1 / (1 + std::exp(-z / temperature))) * bump(z, temperature); });
      CHECK(mean == doctest::Approx(expected).epsilon(1e-7));
      CHECK(std::abs(mean - bit.gradient) < last);  // proportional to the temperature, if it is small
      last = std::abs(mean - bit.gradient);
    }
    CHECK(last < 2e-2 * std::abs(bit.gradient));
  }
}

TEST_CASE("st_gumbel and gumbel_rao have the same mean on a bit, and the variance is that of averaging given the choice") {
  for (double phi : {0.0, 1.2}) {
    const OneBit bit{phi, 0.3};
    const double temperature = 0.5;
    // Given the choice: means and the mean of squares of dw/dphi.
    const auto moment = [&](bool one, int power) {
      return over_logistic(phi, one ? 0 : -60, one ? 60 : 0, [&](double z) { return std::pow(bump(z, temperature), power); });
    };
    double mean = 0, square = 0, averaged = 0;
    for (bool one : {false, true}) {
      const double share = one ? bit.p : 1 - bit.p, slope = bit.slope(one);
      mean += slope * moment(one, 1);
      square += slope * slope * moment(one, 2);
      averaged += slope * slope * moment(one, 1) * moment(one, 1) / share;
    }
    const auto st = bit.moments("st_gumbel");
    CHECK(st.mean[0] == doctest::Approx(mean).epsilon(1e-8));
    CHECK(st.trace == doctest::Approx(square - mean * mean).epsilon(1e-7));
    for (int m : {1, 2, 10}) {  // ten: from the moments with one and with two
      const auto rao = bit.moments(fmt::format("gumbel_rao[rao_samples={}]", m));
      CHECK(rao.mean[0] == doctest::Approx(mean).epsilon(1e-8));
      CHECK(rao.trace == doctest::Approx(averaged + (square - averaged) / m - mean * mean).epsilon(1e-7));
    }
    CHECK(averaged < square);
  }
}

TEST_CASE("gapped_st on one bit, computed explicitly") {
  for (double phi : logits)
    for (double temperature : {1.0, 0.4}) {
      const OneBit bit{phi, 0.3};
      double mean = 0;
      for (int b : {0, 1}) {
        const double toward = b ? phi : -phi;  // logit of the choice minus the other: raised to 0, then to the gap
        const double gap = std::max(toward, 1.0), w = 1 / (1 + std::exp(-gap / temperature));
        mean += (b ? bit.p : 1 - bit.p) * bit.slope(b) * w * (1 - w) / temperature;
      }
      CHECK(bit.moments(fmt::format("gapped_st[temperature={}]", temperature)).mean[0] == doctest::Approx(mean).epsilon(1e-12));
    }
}

TEST_CASE("with three options, straight_through, reinmax and gapped_st, computed explicitly") {
  const std::vector<double> logit = {0.2, -0.9, 1.3};
  const double t = 0.3;
  const auto model = model_of("bits[options=3,t=0.3,logit=0.2;-0.9;1.3]");  // x = option / 2, f = (x - t)^2
  const auto p = softmax(logit);
  const auto expect = [&](const std::string& spec,
                          const std::function<std::vector<std::pair<double, std::vector<double>>>(int)>& parts) {
    CAPTURE(spec);
    std::vector<double> expected(3);
    for (int b = 0; b < 3; ++b)
      for (const auto& [factor, w] : parts(b))  // factor * (diag(w) - w w') df/dweights
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j) expected[i] += p[b] * factor * ((i == j) * w[i] - w[i] * w[j]) * (b - 2 * t) * j / 2;
    const auto mean = moments_of(spec, *model).mean;
    for (int i = 0; i < 3; ++i) CHECK(mean[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  };
  expect("straight_through", [&](int) { return std::vector{std::pair{1.0, p}}; });
  for (double temperature : {1.0, 1.6})
    expect(fmt::format("reinmax[temperature={}]", temperature), [&](int b) {
      auto half = softmax({logit[0] / temperature, logit[1] / temperature, logit[2] / temperature});
      for (int i = 0; i < 3; ++i) half[i] = (half[i] + (i == b)) / 2;
      return std::vector{std::pair{2.0, half}, std::pair{-0.5, p}};
    });
  expect("gapped_st[temperature=0.7,gap=0.8]", [&](int b) {
    auto moved = logit;
    for (int i = 0; i < 3; ++i) moved[i] = (i == b ? 1.3 : std::min(logit[i], 0.5)) / 0.7;
    return std::vector{std::pair{1 / 0.7, softmax(moved)}};
  });
}

/// Given options forward, with derivative dz = dp: weights one_hot + p - p at the initial point.
class Frozen final : public Handler<double> {
 public:
  explicit Frozen(std::vector<int> path) : path_(std::move(path)) {}
  std::vector<std::vector<double>> at_departure;  // filled by the first run
  double probability = 1;
  Choice<double> choose(Tape<double>& tape, const Question<double>& question) override {
    const auto log_p = question.categories().log_p().value();
    const auto step = static_cast<std::size_t>(question.step);
    if (at_departure.size() == step) {
      at_departure.emplace_back();
      for (std::size_t i = 0; i < log_p.cols; ++i) at_departure.back().push_back(std::exp(log_p(0, i)));
      probability *= at_departure.back()[path_[step]];
    }
    auto weights = tape.constant(1, log_p.cols);
    for (std::size_t i = 0; i < log_p.cols; ++i)
      tape.mutable_value(weights)(0, i) = (static_cast<int>(i) == path_[step]) + std::exp(log_p(0, i)) - at_departure[step][i];
    return {fan_out(question, 1), Relaxed<double>{{path_[step]}, weights}};
  }

 private:
  std::vector<int> path_;
};

double loss_of(const Model<double>& model, const Batch& batch, Frozen& handler) {
  Tape<double> tape;
  Episode<double> episode(tape, handler, 1);
  model.run(batch, episode);
  double sum = 0;
  for (const auto& cost : episode.costs()) sum += cost.loss.value().data[0];
  return sum;
}

TEST_CASE("straight_through's derivatives through later choices agree with finite differences of frozen choices") {
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    const auto batch = Recurrent<double>::batch().select({1});  // two choices of three options
    std::vector<double> expected(model.parameters().size());
    for (int first = 0; first < 3; ++first)
      for (int second = 0; second < 3; ++second) {
        Frozen handler({first, second, 0});
        loss_of(model, batch, handler);
        std::size_t i = 0;
        for (auto& parameter : model.parameters())
          for (auto& value : parameter.value) {
            const double at = value, h = 1e-5;
            value = at + h;
            const double above = loss_of(model, batch, handler);
            value = at - h;
            expected[i++] += handler.probability * (above - loss_of(model, batch, handler)) / (2 * h);
            value = at;
          }
      }
    const auto truth = exact_reference({}, model, batch, 1e6);
    const auto mean = exact_moments(*estimator_of("straight_through", model), model, batch, truth.of_example, 1e6).mean;
    CHECK(largest_difference(mean, expected) < 1e-8);
    CHECK(largest_difference(mean, truth.gradient) > 1e-3);
  }
}

/// Mean of many keyed estimates, and standard errors.
struct Sampling {
  std::vector<double> mean, error;
  Sampling(const Estimator<double>& estimator, const Model<double>& model, const Batch& batch, int count) {
    const std::size_t size = model.parameters().size();
    mean.resize(size);
    error.resize(size);
    Tape<double> tape;
    for (int n = 0; n < count; ++n) {
      tape.clear();
      KeyedRandomness random(Key(17) / static_cast<std::uint64_t>(n));
      tape.backward(estimator.draw({tape, model, batch, random}).surrogate);
      std::vector<double> g(size);
      tape.add_gradient(model.parameters(), std::span<double>(g));
      for (std::size_t i = 0; i < size; ++i) {
        mean[i] += g[i] / count;
        error[i] += g[i] * g[i] / count;
      }
    }
    for (std::size_t i = 0; i < size; ++i) error[i] = std::sqrt(std::max(0.0, error[i] - mean[i] * mean[i]) / count);
  }
};

TEST_CASE("with three options, noise drawn given the choice has the mean of free noise, within five standard errors") {
  const auto model = model_of("bits[bits=2,options=3,t=0.3,logit=0.2;-0.1;0.7]");
  const Sampling st(*estimator_of("st_gumbel", *model), *model, one_example(), 20000);
  const Sampling rao(*estimator_of("gumbel_rao[rao_samples=3]", *model), *model, one_example(), 20000);
  for (std::size_t i = 0; i < st.mean.size(); ++i) {
    CHECK(std::abs(st.mean[i] - rao.mean[i]) < 5 * std::hypot(st.error[i], rao.error[i]));
    CHECK(rao.error[i] < st.error[i]);
  }
}

TEST_CASE("with three options, reinmax_rao has the mean of noise drawn by rejection, within five standard errors") {
  const std::vector<double> logit = {0.2, -0.9, 1.3};
  const double temperature = 0.7, draws = 20000;
  const auto model = model_of("bits[options=3,t=0.3,logit=0.2;-0.9;1.3]");
  const Sampling found(*estimator_of("reinmax_rao[temperature=0.7,rao_samples=3]", *model), *model, one_example(), 20000);
  std::vector<double> p(3), mean(3), square(3);
  double all = 0;
  for (int i = 0; i < 3; ++i) all += p[i] = std::exp(logit[i]);
  for (double& x : p) x /= all;
  KeyedRandomness random{Key(29)};
  for (std::uint32_t n = 0; n < draws; ++n) {
    const auto z = static_cast<std::size_t>(random.categorical(p, {.example = n}));
    std::vector<double> x(3), w(3);
    std::uint32_t index = 0;
    do {
      for (std::size_t i = 0; i < 3; ++i)
        x[i] = std::log((p[i] + (i == z)) / 2) -
               std::log(-std::log(random.uniform({.example = n, .replica = 1, .index = index++})));
    } while (std::max_element(x.begin(), x.end()) != x.begin() + static_cast<std::ptrdiff_t>(z));
    double sum = 0, along_w = 0, along_p = 0;
    const auto slope = [&](std::size_t i) { return (static_cast<double>(z) - 2 * 0.3) * static_cast<double>(i) / 2; };
    for (std::size_t i = 0; i < 3; ++i) sum += w[i] = std::exp((x[i] - x[z]) / temperature);
    for (std::size_t i = 0; i < 3; ++i) {
      along_w += (w[i] /= sum) * slope(i);
      along_p += p[i] * slope(i);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const double g = 2 / temperature * w[i] * (slope(i) - along_w) - 0.5 * p[i] * (slope(i) - along_p);
      mean[i] += g / draws;
      square[i] += g * g / draws;
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const double error = std::sqrt((square[i] - mean[i] * mean[i]) / draws);
    CHECK(std::abs(found.mean[i] - mean[i]) < 5 * std::hypot(found.error[i], error));
    CHECK(error < 0.01);
  }
}

/// A single choice with log probabilities log_p.
struct Single {
  explicit Single(std::vector<double> log_p) : log_p(std::move(log_p)), count(static_cast<int>(this->log_p.size())) {}
  Categories cells() const { return {log_p.size(), {&count, 1}, log_p}; }
  std::vector<double> perturbed_given(int option, Randomness& random) const {
    const Draw where;
    std::vector<double> z(log_p.size());
    perturb_given(cells(), {&option, 1}, {&where, 1}, random, z);
    return z;
  }
  std::vector<double> shares(int option, const std::vector<double>& z) const {
    std::vector<double> share(z.size());
    auto p = log_p;
    for (double& x : p) x = std::exp(x);
    followed(p.size(), {&count, 1}, p, {&option, 1}, z, share);
    return share;
  }
  std::vector<double> log_p;
  int count;
};

TEST_CASE("the noise of a bit given its option is the logit of a uniform number on the interval that leads to the option") {
  for (double phi : {-4.0, -0.3, 0.0, 2.5})
    for (int option : {0, 1})
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const double p = 1 / (1 + std::exp(-phi));
        KeyedRandomness random(Key(6) / seed);
        const double v = random.uniform({}), u = option == 1 ? 1 - p + p * v : (1 - p) * v;
        const auto z = Single({std::log1p(-p), std::log(p)}).perturbed_given(option, random);
        CHECK(z[1] - z[0] == doctest::Approx(phi + std::log(u) - std::log1p(-u)).epsilon(1e-11));
        std::vector<float> w(2);
        const int two = 2;
        relaxed<float>(2, {&two, 1}, z, 0.7, w);
        CHECK(w[1] == doctest::Approx(1 / (1 + std::exp((z[0] - z[1]) / 0.7))).epsilon(1e-6));
      }
}

TEST_CASE(
    "the noise given a choice produces that choice, and its derivative in the probabilities agrees with finite differences") {
  for (std::size_t n : {2, 4})
    for (int option = 0; option < static_cast<int>(n); ++option) {
      const auto normalised = [&](std::vector<double> logit) {
        double sum = 0;
        for (double l : logit) sum += std::exp(l);
        for (double& l : logit) l -= std::log(sum);
        return logit;
      };
      std::vector<double> logit = {0.3, -0.8, 1.1, 0.2};
      logit.resize(n);
      KeyedRandomness random(Key(5) / static_cast<std::uint64_t>(option));
      const auto at = [&](const std::vector<double>& l) { return Single(l).perturbed_given(option, random); };
      const auto log_p = normalised(logit);
      const auto z = at(log_p);
      CHECK(std::max_element(z.begin(), z.end()) - z.begin() == option);
      const auto share = Single(log_p).shares(option, z);
      for (std::size_t i = 0; i < n; ++i) {  // of differences z_j - z_option in logit i
        auto up = logit, down = logit;
        up[i] += 1e-5;
        down[i] -= 1e-5;
        const auto above = at(normalised(up)), below = at(normalised(down));
        for (std::size_t j = 0; j < n; ++j) {
          const double difference = ((above[j] - above[option]) - (below[j] - below[option])) / 2e-5;
          const auto moves = [&](std::size_t k) { return share[k] * ((i == k) - (n == 2 ? 0 : std::exp(log_p[i]))); };
          CHECK(difference == doctest::Approx(moves(j) - moves(option)).epsilon(1e-6));
        }
      }
    }
}

TEST_CASE("noise and weights are finite for nearly certain choices") {
  for (double phi : {-800.0, 800.0}) {
    const Single choice({phi > 0 ? -phi : 0, phi > 0 ? 0 : phi});
    for (int option : {0, 1}) {
      KeyedRandomness random{Key(1)};
      const auto z = choice.perturbed_given(option, random);
      CHECK(std::isfinite(z[1]));
      CHECK((z[1] > 0) == (option == 1));
      for (double share : choice.shares(option, z)) CHECK((share >= 0 && share <= 1));
      std::vector<double> w(2);
      relaxed<double>(2, {&choice.count, 1}, z, 0.01, w);
      CHECK(w[option] == doctest::Approx(1));
    }
  }
  const auto model = model_of("bits[bits=2,t=0.3,logit=-60;60]");
  for (const auto* spec : {"gumbel_softmax", "st_gumbel", "gumbel_rao", "gapped_st", "reinmax[temperature=0.05]", "reinmax_rao",
                           "reinmax_cv", "rebar", "relax"}) {
    CAPTURE(spec);
    const Sampling some(*estimator_of(spec, *model), *model, one_example(), 20);
    CHECK(std::all_of(some.mean.begin(), some.mean.end(), [](double g) { return std::isfinite(g); }));
  }
}

TEST_CASE("every relaxation runs if choices feed later ones, also with ragged and finished rows") {
  for (const auto* spec :
       {"straight_through[samples=2]", "gumbel_softmax[samples=2]", "st_gumbel[samples=2]", "gumbel_rao[samples=2]",
        "gapped_st[samples=2]", "reinmax[samples=2]", "reinmax_rao[samples=2]", "reinmax_cv[samples=2]"})
    for (bool feeding : {false, true}) {
      CAPTURE(spec);
      Recurrent<double> model(feeding);
      const Sampling once(*estimator_of(spec, model), model, Recurrent<double>::batch(), 2);
      CHECK(largest(once.mean) > 0);
      CHECK(std::all_of(once.mean.begin(), once.mean.end(), [](double g) { return std::isfinite(g); }));
    }
}

TEST_CASE("zero samples and zero temperature are rejected") {
  const auto model = model_of("bits");
  for (const auto* spec :
       {"straight_through[samples=0]", "gumbel_softmax[temperature=0]", "st_gumbel[temperature=-1]",
        "gumbel_rao[rao_samples=0]", "gapped_st[gap=-1]", "reinmax[temperature=0]", "reinmax_rao[rao_samples=0]",
        "reinmax_cv[control_temperature=0]", "straight_through[forward_temperature=0]", "muprop[samples=0]"}) {
    CAPTURE(spec);
    CHECK_THROWS_AS(estimator_of(spec, *model), UsageError);
  }
}

/// reinmax without the second-order term.
class Halved final : public RelaxationEstimator<double> {
 public:
  Halved() : RelaxationEstimator<double>(1) {}

 private:
  Relaxed<double> relax(const RelaxationContext<double>& context) const override {
    auto option = context.draw();
    auto moves = context.constants([&](std::size_t r, std::span<double> move) {
      for (std::size_t i = 0; i < move.size(); ++i)
        move[i] = std::log((std::exp(move[i]) + (static_cast<int>(i) == option[r])) / 2) - move[i];
    });
    return straight_through(context, option, affine(context.softmax(moves, 1), 2.0));
  }
};

TEST_CASE("a second-order rule with a missing term is detected") {
  const OneBit bit{0.7, 0.3};
  CHECK(bias_of(Halved(), *bit.model, one_example()) > 1e-3);
}

}  // namespace
}  // namespace hardgrad::testing::relaxed_test
