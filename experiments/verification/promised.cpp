#include "experiments/verification/promised.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/autodiff/gradient.hpp"
#include "core/autodiff/reduce.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/measurement/truth.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/small_choice.hpp"
#include "experiments/verification/test_models.hpp"

namespace hardgrad::verification {
namespace {

constexpr double outcome_cap = 4e5;

/// A network to try a promise on.
struct Ground {
  int options, columns = 1;
  double spread = 0.9;
  SmallLoss loss = {};
  bool alike = false;

  std::string text() const {
    return fmt::format("{} options{}{}", options, columns > 1 ? fmt::format(", {} columns", columns) : "",
                       spread > 2 ? ", peaked" : "");
  }
};
const std::vector<Ground> grounds = {{2}, {3}, {3, 1, 3.0}, {2, 2}};
const std::vector<Ground> sums = {{2, 2, 0.9, {.apart = true}}, {2, 2, 3.0, {.apart = true}}};

Batch examples(std::size_t count) {
  Batch batch;
  batch.id.resize(count);
  std::iota(batch.id.begin(), batch.id.end(), 0);
  return batch;
}
Batch one_example() { return examples(1); }

Spec overlaid(Spec spec, const std::string& with) {
  if (!with.empty())
    for (const auto& [key, value] : Spec::parse("_[" + with + "]").arguments) spec = spec.with(key, value);
  return spec;
}

/// A number over `values` x that is a power series in x, at x = 0: Neville's scheme. The error is the last step's.
std::pair<double, double> extrapolated(const std::vector<double>& x, std::vector<double> y) {
  double before = y.back();
  for (std::size_t order = 1; order < x.size(); ++order) {
    before = y.back();
    for (std::size_t i = x.size() - 1; i >= order; --i) y[i] = (x[i - order] * y[i] - x[i] * y[i - 1]) / (x[i - order] - x[i]);
  }
  return {y.back(), std::abs(y.back() - before)};
}

/// Its estimate is a number of the inner estimator's own loss, times the model's first parameter.
class OfOwnLoss final : public Estimator<double> {
 public:
  OfOwnLoss(const Estimator<double>& inner, std::size_t which) : inner_(inner), which_(which) {}
  bool exchangeable() const override { return inner_.exchangeable(); }

 private:
  Estimate<double> estimate(const Problem<double>& p) const override {
    auto estimate = inner_.draw({.tape = p.tape, .model = p.model, .batch = p.batch, .random = p.random, .learning = true});
    std::vector<double> g(inner_.own_parameters().size());
    p.tape.backward(estimate.own_loss);
    p.tape.add_gradient(inner_.own_parameters(), std::span<double>(g));
    estimate.surrogate = sum(p.tape.parameter(*p.model.parameters().begin()), g[which_]);
    return estimate;
  }
  const Estimator<double>& inner_;
  std::size_t which_;
};

class Judge {
 public:
  explicit Judge(const Spec& spec) : spec_(spec) {}

  std::vector<Check> run() {
    for (const auto& promise : Estimators::instance().at(spec_.name).promises) {
      promise_ = &promise;
      tried_ = 0;
      try {
        judge();
        if (tried_ == 0) add("", "it could be tried nowhere");
      } catch (const std::exception& e) {
        add("", e.what());
      }
    }
    return std::move(checks_);
  }

 private:
  /// An estimator on a ground, with its truth.
  struct Made {
    Spec spec;
    std::unique_ptr<SmallModel<double>> model;
    std::unique_ptr<Estimator<double>> estimator;
    Truth truth;

    Moments moments() const { return moments(*estimator); }
    Moments moments(const Estimator<double>& of) const {
      return exact_moments(of, *model, one_example(), truth.of_example, outcome_cap);
    }
    double scale() const { return std::max(1e-3, largest(truth.gradient)); }
  };

  void judge() {
    using Kind = Promise::Kind;
    switch (promise_->kind) {
      case Kind::mean:
        return on_grounds({grounds.begin(), grounds.begin() + 3}, [this](const Made& made) { return mean(made); });
      case Kind::advantages:
        return on_grounds({{.options = 2, .loss = {.path = false}},
                           {.options = 3, .spread = 1.5, .loss = {.path = false}},
                           {.options = 2, .columns = 2, .loss = {.path = false, .apart = true}}},
                          [this](const Made& made) { return advantages(made); });
      case Kind::unbiased: return on_grounds(grounds, [this](const Made& made) { return unbiased(made); });
      case Kind::variance: return on_grounds({grounds[3]}, [this](const Made& made) { return variance(made); });
      case Kind::same_moments: return on_grounds(grounds, [this](const Made& made) { return against_other(made, true); });
      case Kind::less_variance:
        return on_grounds(promise_->loss == Promise::Loss::sum ? sums : grounds,
                          [this](const Made& made) { return against_other(made, false); });
      case Kind::consistent:
        limit({2}, {24, 32, 48, 64, 96, 128, 192, 256}, true);
        if (tried_ == 0) nearly_unbiased();
        return;
      case Kind::limit: return limit({2}, {0.16, 0.12, 0.08, 0.06, 0.04, 0.03, 0.02}, false);
      case Kind::unshifted: return unshifted();
      case Kind::noiseless: return noiseless();
      case Kind::best_constant:
        for (const auto& ground : {Ground{3}, Ground{2, 2}}) best_constant(ground);
        return;
      case Kind::descends_square: return on_grounds({{2}, {2, 2}}, [this](const Made& made) { return descends(made); });
    }
  }

  /// Notes a check: failed if `failure` is not empty.
  void add(const std::string& where, const std::string& failure, const std::string& detail = "") {
    checks_.push_back({promise_->text(), where, failure.empty() ? Check::Outcome::passed : Check::Outcome::failed,
                       failure.empty() ? detail : failure});
    ++tried_;
  }
  void skip(const std::string& where, const std::string& why) {
    checks_.push_back({promise_->text(), where, Check::Outcome::skipped, why});
  }

  std::optional<Made> make(const Ground& ground, const std::string& with) {
    Made made{overlaid(spec_, with), {}, {}, {}};
    made.model = std::make_unique<SmallModel<double>>(ground.options, ground.columns, ground.loss, ground.spread,
                                                      wants_posterior(made.spec), ground.alike);
    if (const auto why = unsupported(made.spec, made.model->structure()); !why.empty()) {
      skip(ground.text(), why);
      return {};
    }
    made.estimator = make_estimator<double>(made.spec, made.model->structure(), Key(1));
    made.truth = exact_truth(made.estimator->target(), *made.model, one_example(), outcome_cap);
    return made;
  }

  /// Runs check(made) -> {failure, detail} on each ground; a check that says nothing at all was not to be had.
  using Said = std::pair<std::string, std::string>;
  void on_grounds(const std::vector<Ground>& where, const std::function<Said(const Made&)>& check) {
    for (const auto& ground : where) {
      const auto made = make(ground, promise_->with);
      if (!made) continue;
      try {
        const auto [failure, detail] = check(*made);
        failure.empty() && detail.empty() ? skip(ground.text(), "it is not written for so many options or columns")
                                          : add(ground.text(), failure, detail);
      } catch (const NotExact& e) {
        skip(ground.text(), e.what());
      }
    }
  }

  static Said within(double off, double allowed, const std::string& what) {
    const auto found = fmt::format("{} off by {:.1e}", what, off);
    return off <= allowed ? Said{"", found} : Said{found, ""};
  }

  Said mean(const Made& made) {
    const auto& structure = made.model->structure();
    if (structure.most_columns() > 1) return {};
    const Settings settings(spec_.name, Estimators::instance().at(spec_.name).parameters, made.spec);
    const auto expected = promise_->formula(settings, made.model->formula());
    if (expected.size() == 0) return {};
    const auto moments = made.moments();
    double off = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) off = std::max(off, std::abs(moments.mean[i] - expected[i]));
    return within(off / made.scale(), 1e-8 + moments.mean_error / made.scale(), "mean");
  }

  /// Moments of the formula over all that four examples (one, if they are not coupled) can draw, of each column by itself.
  Said advantages(const Made& made) {
    const Settings settings(spec_.name, Estimators::instance().at(spec_.name).parameters, made.spec);
    const std::size_t B = made.estimator->couples_examples() ? 4 : 1, K = settings.integer("samples");
    const auto batch = examples(B);
    const auto around = exact_truth(made.estimator->target(), *made.model, batch, outcome_cap).of_example;
    const auto moments = exact_moments(*made.estimator, *made.model, batch, around, outcome_cap);
    double off = 0;
    for (int column = 0; column < made.model->structure().most_columns(); ++column) {
      const auto [mean, squares] = of_advantages(settings, made.model->formula(column), B, K);
      for (std::size_t i = 0, at = column * mean.size(); i < mean.size(); ++i, ++at)
        off = std::max({off, std::abs(moments.mean[at] - mean[i]),
                        std::abs(moments.variances[at] + std::pow(moments.mean[at], 2) - squares[i]) / made.scale()});
    }
    return within(off / made.scale(), 1e-8, "mean and variance");
  }

  /// [S] mean and mean square of what B examples with K samples have by the formula.
  std::pair<SmallChoice::Vector, SmallChoice::Vector> of_advantages(const Settings& settings, const SmallChoice& choice,
                                                                    std::size_t B, std::size_t K) const {
    const auto p = choice.p();
    std::vector<std::size_t> z(B * K);  // counts up in base S
    SmallChoice::Vector mean(0.0, p.size()), squares = mean;
    for (bool more = true; more;) {
      double probability = 1;
      Promise::Losses f(B, std::vector<double>(K));
      for (std::size_t i = 0; i < z.size(); ++i) {
        probability *= p[z[i]];
        f[i / K][i % K] = choice.loss(choice.one_hot(z[i]));
      }
      const auto advantage = promise_->advantages(settings, f);
      SmallChoice::Vector g(0.0, p.size());
      for (std::size_t i = 0; i < z.size(); ++i) g += advantage[i / K][i % K] * (choice.one_hot(z[i]) - p);
      g /= static_cast<double>(B * K);
      mean += probability * g;
      squares += probability * g * g;
      std::size_t i = 0;
      while (i < z.size() && ++z[i] == p.size()) z[i++] = 0;
      more = i < z.size();
    }
    return {mean, squares};
  }

  static Said unbiased(const Made& made) {
    const auto moments = made.moments();
    return within(largest_difference(moments.mean, made.truth.gradient) / made.scale(),
                  1e-9 + moments.mean_error / made.scale(), "mean");
  }

  Said variance(const Made& made) const {
    const auto moments = made.moments();
    const bool same = std::abs(moments.trace - promise_->value) <= 1e-7 * promise_->value + moments.trace_error;
    const auto found = fmt::format("variance {:.10g}", moments.trace);
    return same ? Said{"", found} : Said{fmt::format("{}, not {:.10g}", found, promise_->value), ""};
  }

  Said against_other(const Made& made, bool equal) {
    const auto other_spec = Spec::parse(promise_->other);
    if (!unsupported(other_spec, made.model->structure()).empty()) return {};
    const auto other = make_estimator<double>(other_spec, made.model->structure(), Key(1));
    const auto own = made.moments(), others = made.moments(*other);
    const double square = std::pow(made.scale(), 2) + others.trace;
    const double doubt = (own.trace_error + others.trace_error) / square, excess = (own.trace - others.trace) / square;
    if (!equal)
      return {excess > 1e-9 + doubt ? fmt::format("the variance is {:.4g}, above {:.4g}", own.trace, others.trace) : "",
              fmt::format("variance {:.4g}, the other's {:.4g}", own.trace, others.trace)};
    const auto of_mean = within(largest_difference(own.mean, others.mean) / made.scale(),
                                1e-8 + (own.mean_error + others.mean_error) / made.scale(), "mean");
    return of_mean.first.empty() ? within(std::abs(excess), 1e-8 + doubt, "variance") : of_mean;
  }

  /// Bias over values of a setting, drawn out to where it should vanish.
  void limit(const Ground& ground, const std::vector<double>& values, bool integer) {
    std::vector<double> x;
    std::vector<std::vector<double>> bias;  // [P][values]
    double scale = 1;
    for (const double value : values) {
      auto with = promise_->with + (promise_->with.empty() ? "" : ",") + fmt::format("{}={}", promise_->parameter, value);
      const auto made = make(ground, with);
      if (!made) return;
      const auto moments = made->moments();
      bias.resize(moments.mean.size() + integer);
      for (std::size_t i = 0; i < moments.mean.size(); ++i) bias[i].push_back(moments.mean[i] - made->truth.gradient[i]);
      if (integer) bias.back().push_back(moments.loss - made->truth.value);
      x.push_back(integer ? 1 / value : value);
      scale = made->scale();
    }
    double first = 0, last = 0, doubt = 0;
    for (const auto& of : bias) {
      const auto [at_end, error] = extrapolated(x, of);
      first = std::max(first, std::abs(of.front()) / scale);
      last = std::max(last, std::abs(at_end) / scale);
      doubt = std::max(doubt, error / scale);
    }
    const auto said = fmt::format("relative bias {:.2g} at {}, {:.1g} in the limit (good to {:.1g})", first, values.front(),
                                  last, std::max(doubt, 1e-15));
    add(ground.text(), last > 1e-5 ? said : "", said);
  }

  /// On networks that dream, which the small one does not: by draws, with many samples.
  void nearly_unbiased() {
    constexpr int many = 256, draws = 2000;
    const auto spec = overlaid(spec_, promise_->with).with(promise_->parameter, std::to_string(many));
    for (const auto& tested : test_models()) {
      if (!unsupported(spec, tested.model->structure()).empty()) continue;
      const auto estimator = make_estimator<double>(spec, tested.model->structure(), Key(1));
      const auto m = measure(spec, *estimator, *tested.model, tested.batch, {.replicates = draws}, Key(8));
      const auto found = fmt::format("relative bias {:.2g} at {} ({} draws)", m.relative_bias, many, draws);
      add(tested.name, m.relative_bias <= 0.1 ? "" : found, found);
    }
  }

  void unshifted() {
    for (int options : {3, 2, 0}) {
      const auto plain = shifted(options, 0), moved = shifted(options, 10);
      const auto spec = overlaid(spec_, promise_->with);
      if (const auto why = unsupported(spec, plain.model->structure()); !why.empty()) {
        skip(moved.name, why);
        continue;
      }
      const auto estimator = make_estimator<double>(spec, plain.model->structure(), Key(1));
      double off = 0, size = 0;
      for (std::uint64_t i = 0; i < 20; ++i) {
        const auto before = gradient_of(*estimator, *plain.model, plain.batch, Key(6) / i);
        off = std::max(off, largest_difference(gradient_of(*estimator, *moved.model, moved.batch, Key(6) / i), before));
        size = std::max(size, largest(before));
      }
      const auto [failure, detail] = within(off / std::max(1.0, size), 1e-9, "20 estimates");
      add(moved.name, failure, detail);
    }
  }

  void noiseless() {
    for (auto ground : {Ground{2}, Ground{3}, Ground{2, 2}}) {
      ground.alike = true;
      ground.loss = promise_->loss == Promise::Loss::constant ? SmallLoss{1.3, 0, 0, false} : SmallLoss{0.4, 1, 0, false};
      const auto made = make(ground, promise_->with);
      if (!made) continue;
      try {
        double allowed = 1e-20;
        if (promise_->learned) {
          stir(*made->estimator);
          allowed = 1e-4 * made->moments().trace;
          learn(*made);
        }
        const double trace = made->moments().trace;
        const auto found = fmt::format("variance {:.1e}", trace);
        add(ground.text(), trace <= allowed ? "" : found, found);
      } catch (const NotExact& e) {
        skip(ground.text(), e.what());
      }
    }
  }

  static void learn(const Made& made) {
    auto& own = made.estimator->own_parameters();
    std::vector<double> g(own.size());
    Tape<double> tape;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      KeyedRandomness random(Key(7) / i);
      tape.clear();
      const auto batch = one_example();
      auto estimate =
          made.estimator->draw({.tape = tape, .model = *made.model, .batch = batch, .random = random, .learning = true});
      made.estimator->learn(estimate);
      if (own.size() == 0) continue;
      differentiate(estimate.own_loss, own, g);
      std::size_t k = 0;
      for (auto& parameter : own)
        for (auto& value : parameter.value.data) value -= 0.01 * g[k++];
    }
  }

  void best_constant(const Ground& ground) {
    std::vector<double> x, y;
    double least = 0;
    for (const int samples : {6, 8, 12, 16, 24, 32}) {
      const auto made = make(ground, promise_->with + (promise_->with.empty() ? "" : ",") + fmt::format("samples={}", samples));
      if (!made) return;
      if (x.empty()) {  // a parabola in the constant
        double v[3];
        for (int c = 0; c < 3; ++c) {
          const auto with = Spec::parse(promise_->other).with(promise_->parameter, std::to_string(c)).with("samples", "1");
          v[c] = made->moments(*make_estimator<double>(with, made->model->structure(), Key(1))).trace;
        }
        const double square = (v[2] - 2 * v[1] + v[0]) / 2, line = v[1] - v[0] - square;
        least = v[0] - line * line / (4 * square);
      }
      x.push_back(1.0 / samples);
      y.push_back(samples * made->moments().trace);
    }
    const auto [at_end, error] = extrapolated(x, y);
    const auto found =
        fmt::format("variance of one of many samples {:.5g} (good to {:.1g}), the least {:.5g}", at_end, error, least);
    add(ground.text(), at_end > least * (1 + 1e-3) ? found : "", found);
  }

  static Said descends(const Made& made) {
    auto& estimator = *made.estimator;
    stir(estimator);
    // Refused where so many moments, two for each parameter, would take minutes: noise of two columns that is integrated over.
    exact_moments(estimator, *made.model, one_example(), made.truth.of_example, 2e4);
    const auto square = [&] {
      const auto m = made.moments();
      double sum = m.trace;
      for (double g : m.mean) sum += g * g;
      return sum;
    };
    const auto mean_of_own = [&](const Estimator<double>& of, std::size_t which, double cap) {
      const std::vector<std::vector<double>> around = {std::vector<double>(made.truth.gradient.size())};
      return exact_moments(OfOwnLoss(of, which), *made.model, one_example(), around, cap).mean[0];
    };
    std::size_t which = 0;
    double off = 0, size = 0, first = 0;
    for (auto& parameter : estimator.own_parameters())
      for (auto& value : parameter.value.data) {
        const double at = value, h = 1e-4;
        value = at + h;
        const double above = square();
        value = at - h;
        const double wanted = (above - square()) / (2 * h);
        value = at;
        const double mean = mean_of_own(estimator, which, outcome_cap);
        if (which++ == 0) first = mean;
        off = std::max(off, std::abs(mean - wanted));
        size = std::max(size, std::abs(wanted));
      }
    if (size == 0) return {"nothing is learned", ""};
    // Samples that are copies of one another learn by the mean of what each would.
    const Settings settings(made.spec.name, Estimators::instance().at(made.spec.name).parameters, made.spec);
    if (made.model->structure().most_columns() == 1 && settings.integer("samples") == 1) {
      const auto two = make_estimator<double>(made.spec.with("samples", "2"), made.model->structure(), Key(1));
      stir(*two);
      if (two->copies() == 2) off = std::max(off, std::abs(mean_of_own(*two, 0, outcome_cap) - first));
    }
    return within(off / size, 1e-3, fmt::format("{} derivatives", which));
  }

  Spec spec_;
  const Promise* promise_ = nullptr;
  int tried_ = 0;
  std::vector<Check> checks_;
};

}  // namespace

std::vector<Check> keeps_promises(const Spec& spec) { return Judge(spec).run(); }

}  // namespace hardgrad::verification
