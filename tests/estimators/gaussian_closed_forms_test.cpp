// Normal numbers with a quadratic or cosine cost: bias and variance of every kind of gradient estimate equal their formulas.
//
// Mohamed, Rosca, Figurnov & Mnih 2020, Monte Carlo gradient estimation in machine learning, sec. 4 (score function), 5
// (pathwise), 6 (measure-valued), 7 (coupling). z = mu + s e; parameters mu and log s.
#include <doctest/doctest.h>

#include <array>
#include <numbers>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "experiments/measurement/lengths.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/waves.hpp"

namespace hardgrad::testing::gaussian_closed_forms_test {
using namespace measurement;
namespace {

struct Toy {
  bool cosine;
  double k, mu, log_s;
  double s = std::exp(log_s);
  Wave e = Wave::e();
  /// f, and its derivatives in mu and log s along the draw, as functions of e.
  Wave f = cosine ? Wave::cosine(k * s, k* mu) : (Wave(mu - k) + Wave(s) * e) * (Wave(mu - k) + Wave(s) * e);
  Wave slope = cosine ? Wave(k) * Wave::cosine(k * s, k* mu + std::numbers::pi / 2) : Wave(2) * (Wave(mu - k) + Wave(s) * e);
  std::array<Wave, 2> path = {slope, slope* Wave(s) * e};
  /// Scores in mu and log s.
  std::array<Wave, 2> score = {Wave(1 / s) * e, e* e - Wave(1)};
  std::shared_ptr<Model<double>> model = model_of(fmt());

  std::string fmt() const {
    return "gaussians[function=" + std::string(cosine ? "cosine" : "quadratic") + ",k=" + std::to_string(k) +
           ",mean=" + std::to_string(mu) + ",log_scale=" + std::to_string(log_s) + "]";
  }
  /// d E[f] / d(mu, log s)
  std::array<double, 2> gradient() const {
    if (!cosine) return {2 * (mu - k), 2 * s * s};
    const double damped = std::exp(-k * k * s * s / 2);
    return {-k * std::sin(k * mu) * damped, -k * k * s * s * std::cos(k * mu) * damped};
  }
  Moments moments(const std::string& estimator, double cap = 1e6) const {
    const auto truth = exact_reference({}, *model, one_example(), 1e6);
    return exact_moments(*estimator_of(estimator, *model), *model, one_example(), truth.of_example, cap);
  }
  /// Checks that the mean is the gradient's formula, and the variance the given one.
  void expect(const std::string& estimator, const std::array<double, 2>& variance, double cap = 1e6) const {
    CAPTURE(fmt());
    CAPTURE(estimator);
    const auto m = moments(estimator, cap);
    const double tolerance = 1e-10;
    for (int i : {0, 1}) {
      CAPTURE(i);
      CHECK(std::abs(m.mean[i] - gradient()[i]) < tolerance * std::max(1.0, std::abs(gradient()[i])));
      CHECK(std::abs(m.variances[i] - variance[i]) < tolerance * std::max(1.0, variance[i]));
    }
  }
};

std::vector<Toy> toys() {
  return {{false, 0.7, -0.2, 0.1}, {false, -0.4, 1.1, -0.8}, {true, 1.3, 0.4, -0.3}, {true, 0.5, -1.2, 0.2}};
}

double squared(double x) { return x * x; }

TEST_CASE("the gradient by quadrature equals the formula, and so do Waves") {
  for (const auto& toy : toys()) {
    const auto truth = exact_reference({}, *toy.model, one_example(), 1e6);
    CHECK(truth.error <= 1e-8 * truth.norm());
    for (int i : {0, 1}) {
      CHECK(std::abs(truth.gradient[i] - toy.gradient()[i]) < 1e-12);
      CHECK(std::abs((toy.f * toy.score[i]).mean() - toy.gradient()[i]) < 1e-13);
      CHECK(std::abs(toy.path[i].mean() - toy.gradient()[i]) < 1e-13);
    }
    CHECK(std::abs(truth.value - toy.f.mean()) < 1e-12);
  }
}

TEST_CASE("score function: Var f s, with a constant baseline, over K") {
  for (const auto& toy : toys()) {
    std::array<double, 2> plain{}, centred{}, half{};
    for (int i : {0, 1}) {
      plain[i] = (toy.f * toy.score[i]).variance();
      centred[i] = ((toy.f - Wave(0.3)) * toy.score[i]).variance();
      half[i] = plain[i] / 2;
    }
    toy.expect("reinforce", plain);
    toy.expect("reinforce[baseline=0.3]", centred);
    toy.expect("reinforce[samples=2]", half);
    if (!toy.cosine) {  // d^4/s^2 + 14 d^2 + 15 s^2 and 2 d^4 + 60 d^2 s^2 + 74 s^4
      const double d = toy.mu - toy.k, s = toy.s;
      CHECK(plain[0] == doctest::Approx(std::pow(d, 4) / (s * s) + 14 * d * d + 15 * s * s).epsilon(1e-12));
      CHECK(plain[1] == doctest::Approx(2 * std::pow(d, 4) + 60 * d * d * s * s + 74 * std::pow(s, 4)).epsilon(1e-12));
    }
  }
}

/// Variance of a mean over all pairs of n units of a kernel with these two variances (Hoeffding 1948).
double u_statistic(int n, double given_one, double kernel) { return 2.0 / (n * (n - 1)) * (2 * (n - 2) * given_one + kernel); }

TEST_CASE("leave-one-out: a U-statistic of half (f_1 - f_2)(s_1 - s_2)") {
  for (const auto& toy : toys())
    for (int samples : {2, 3}) {
      std::array<double, 2> expected{};
      for (int i : {0, 1}) {
        const auto& [f, s] = std::pair(toy.f, toy.score[i]);
        const auto m = [&](const Wave& x) { return x.mean(); };
        const double given_one = ((f - Wave(m(f))) * s).variance() / 4;
        const double square =
            (2 * m(f * f * s * s) + 2 * m(f * f) * m(s * s) - 4 * m(f * s * s) * m(f) + 4 * squared(m(f * s))) / 4;
        expected[i] = u_statistic(samples, given_one, square - squared(m(f * s)));
      }
      toy.expect("rloo[samples=" + std::to_string(samples) + "]", expected);
    }
}

TEST_CASE("pathwise: Var f'(z) and Var f'(z) s e, over K") {
  for (const auto& toy : toys()) {
    std::array<double, 2> one{}, two{};
    for (int i : {0, 1}) two[i] = (one[i] = toy.path[i].variance()) / 2;
    toy.expect("pathwise", one);
    toy.expect("pathwise[samples=2]", two);
    if (!toy.cosine) {  // 4 s^2 and 4 d^2 s^2 + 8 s^4
      const double d = toy.mu - toy.k, s = toy.s;
      CHECK(one[0] == doctest::Approx(4 * s * s).epsilon(1e-12));
      CHECK(one[1] == doctest::Approx(4 * d * d * s * s + 8 * std::pow(s, 4)).epsilon(1e-12));
    }
  }
}

TEST_CASE("antithetic pairs: terms even or odd in the noise cancel, plain, without other pairs, and pathwise") {
  for (const auto& toy : toys()) {
    std::array<double, 2> pair{}, two{}, left_out{}, path{};
    for (int i : {0, 1}) {
      const auto even = [](const Wave& x) { return Wave(0.5) * (x + x.mirrored()); };
      const auto a = even(toy.f * toy.score[i]), s = even(toy.score[i]), f = even(toy.f);
      const auto m = [&](const Wave& x) { return x.mean(); };
      two[i] = (pair[i] = a.variance()) / 2;
      const double square =
          (2 * m(a * a) + 2 * squared(m(a)) + 2 * m(s * s) * m(f * f) + 2 * squared(m(s * f)) - 4 * m(a * s) * m(f)) / 4 -
          squared(m(a));
      left_out[i] = u_statistic(2, (a - s * Wave(m(f))).variance() / 4, square);
      path[i] = even(toy.path[i]).variance();
    }
    toy.expect("antithetic[samples=2]", pair);
    toy.expect("antithetic[samples=4,leave_one_out=false]", two);
    toy.expect("antithetic[samples=4]", left_out);
    toy.expect("pathwise[samples=2,antithetic=true]", path);
    if (!toy.cosine) {
      const double d = toy.mu - toy.k, s = toy.s;
      CHECK(pair[0] == doctest::Approx(8 * d * d).epsilon(1e-12));
      CHECK(pair[1] == doctest::Approx(2 * std::pow(d, 4) + 20 * d * d * s * s + 74 * std::pow(s, 4)).epsilon(1e-12));
      CHECK(std::abs(path[0]) < 1e-13);
      CHECK(path[1] == doctest::Approx(8 * std::pow(s, 4)).epsilon(1e-12));
    }
  }
}

/// exp(-x^2) times the integral of exp(t^2) from 0 to x (Dawson's function), by Simpson's rule.
double dawson(double x) {
  const int steps = 2000;
  double sum = 0;
  for (int i = 0; i <= steps; ++i) {
    const double t = x * i / steps;
    sum += (i == 0 || i == steps ? 1 : i % 2 ? 4 : 2) * std::exp(t * t - x * x);
  }
  return sum * x / steps / 3;
}

TEST_CASE("measure-valued: a Weibull pair for the mean, and Maxwell less normal, coupled, for the scale") {
  for (const auto& toy : toys()) {
    const double d = toy.mu - toy.k, s = toy.s, a = toy.k * s, b = toy.k * toy.mu;
    double pair, difference;  // E (f(w) - f(-w))^2 and E (f(m) - f(m u))^2
    if (toy.cosine) {  // E cos(c w) = 1 - sqrt(2) c D(c / sqrt(2)) of Weibull; E cos(c m) = (1 - c^2) exp(-c^2 / 2) of Maxwell
      const auto weibull = [](double c) { return 1 - std::numbers::sqrt2 * c * dawson(c / std::numbers::sqrt2); };
      const auto maxwell = [](double c) { return (1 - c * c) * std::exp(-c * c / 2); };
      pair = 2 * squared(std::sin(b)) * (1 - weibull(2 * a));
      const double wide = (1 + std::cos(2 * b) * maxwell(2 * a)) / 2, normal = (1 + std::cos(2 * b) * std::exp(-2 * a * a)) / 2;
      const double bell = std::exp(-a * a / 2);
      difference = wide + normal - (std::cos(2 * b) * (2 * std::exp(-2 * a * a) - bell) + bell);
    } else {
      pair = 16 * d * d * s * s * 2;
      difference = 4 * d * d * s * s + 8 * std::pow(s, 4);
    }
    const auto g = toy.gradient();
    toy.expect("mvd", {pair / (2 * std::numbers::pi * s * s) - squared(g[0]), difference - squared(g[1])}, 1e5);
  }
}

TEST_CASE("several columns: a score contains the other columns' losses, a path does not") {
  const Toy one{false, 0.7, -0.2, 0.1}, other{false, 0.7, 1.1, -0.3};
  const auto model = model_of("gaussians[columns=2,k=0.7,mean=-0.2;1.1,log_scale=0.1;-0.3]");
  const auto truth = exact_reference({}, *model, one_example(), 1e6);
  const auto of = [&](const char* spec) {
    return exact_moments(*estimator_of(spec, *model), *model, one_example(), truth.of_example, 1e6);
  };
  const auto score = of("reinforce"), path = of("pathwise");
  for (int i : {0, 1})
    for (int d : {0, 1}) {
      const auto& mine = d == 0 ? one : other;
      const auto& rest = (d == 0 ? other : one).f;
      const auto &f = mine.f, &s = mine.score[i];
      const double square =
          (f * f * s * s).mean() + 2 * rest.mean() * (f * s * s).mean() + (rest * rest).mean() * (s * s).mean();
      const int entry = 2 * i + d;  // means, then log scales
      CHECK(truth.gradient[entry] == doctest::Approx(mine.gradient()[i]).epsilon(1e-12));
      CHECK(score.variances[entry] == doctest::Approx(square - squared(mine.gradient()[i])).epsilon(1e-10));
      CHECK(path.variances[entry] == doctest::Approx(mine.path[i].variance()).epsilon(1e-10));
    }
}

/// A baseline that includes the sample's own pair, which leave-one-out must exclude here.
class OwnPair final : public Estimator<double> {
 public:
  explicit OwnPair(const Estimator<double>& right) : right_(right) {}
  bool exchangeable() const override { return false; }
  Estimate<double> estimate(const Problem<double>& problem) const override {
    auto estimate = right_.draw(problem);
    auto& episode = *estimate.episode;
    const auto f = episode.costs()[0].loss.value();
    std::vector<double> wrong(f.rows);
    for (std::size_t r = 0; r < wrong.size(); ++r) wrong[r] = -f.data[r ^ 1] / static_cast<double>(f.rows);
    estimate.surrogate = add(estimate.surrogate, weighted_sum(episode.log_probability(0), std::span<const double>(wrong)));
    return estimate;
  }

 private:
  const Estimator<double>& right_;
};

TEST_CASE("a scaled group of two jumps at ties of its losses: the quadrature's error bound contains the truth") {
  // g = sign(f_1 - f_2) / sqrt(8) (score_1 - score_2). With u, v = (e_1 -+ e_2) / sqrt 2, which are independent, a quadratic's
  // sign is that of u (v - c), c = sqrt 2 (k - mu) / s.
  int held = 0, near = 0;
  for (const auto& toy : {Toy{false, 1.2, 0.3, -0.4}, Toy{false, -0.7, 0.9, 0.3}, Toy{false, 0.2, 0.2, 0.1}})
    for (double cap : {3e3, 3e5}) {
      CAPTURE(toy.fmt());
      CAPTURE(cap);
      const double c = std::numbers::sqrt2 * (toy.k - toy.mu) / toy.s, pi = std::numbers::pi;
      const double mean[] = {-std::erf(c / std::numbers::sqrt2) / (toy.s * std::sqrt(2 * pi)),
                             std::numbers::sqrt2 * std::exp(-c * c / 2) / pi};
      const double trace = 1 / (4 * squared(toy.s)) + 0.5 - squared(mean[0]) - squared(mean[1]);
      const auto m = toy.moments("group_normalised[samples=2,epsilon=1e-9]", cap);
      CHECK(std::abs(m.trace - trace) <= m.trace_error);
      CHECK(std::hypot(m.mean[0] - mean[0], m.mean[1] - mean[1]) <= m.mean_error);
      ++held;
      if (cap < 1e5) continue;
      near += m.trace_error < 1e-3 * trace;
      CHECK(std::abs(m.trace - trace) < 1e-4 * trace);
    }
  CHECK(held == 6);
  CHECK(near == 3);
}

TEST_CASE(
    "truth and mean by the same rule have the same error: an unbiased estimator's bias is not known to be zero, nor shown not "
    "to "
    "be") {
  const auto wide = model_of("gaussians[k=-0.7,mean=0.9,log_scale=0.3]", true);
  int seen = 0;
  for (const auto* name : {"iwae_reinforce", "vimco"}) {
    CAPTURE(name);
    const auto estimator = estimator_of(name, *wide);
    const auto truth = exact_reference(estimator->target(), *wide, one_example(), 1e6);
    const auto m = exact_moments(*estimator, *wide, one_example(), truth.of_example, 2e6);
    const double off = distance_between(m.mean, truth.gradient);
    CHECK(off <= truth.error + m.mean_error);
    CHECK(truth.error > 1e-6 * truth.norm());
    ++seen;
  }
  CHECK(seen == 2);
}

TEST_CASE("a mirror's loss as baseline is biased, which is detected") {
  const Toy toy{false, 0.7, -0.2, 0.1};
  const auto right = estimator_of("antithetic[samples=2]", *toy.model);
  CHECK(bias_of(*right, *toy.model, one_example()) < 1e-10);
  CHECK(bias_of(OwnPair(*right), *toy.model, one_example()) > 0.1);
}

}  // namespace
}  // namespace hardgrad::testing::gaussian_closed_forms_test
