#include "core/nn/optimizer.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/support/error.hpp"

namespace hardgrad::testing::optimizer_test {
namespace {

/// Two parameters, "a" [2] and "b" [1, 1], at 1, 2, 3.
template <class T>
ParameterSet<T> three() {
  ParameterSet<T> set;
  set.add("a", {2}).value.storage() = {1, 2};
  set.add("b", {1, 1}).value.storage() = {3};
  return set;
}

template <class T>
std::vector<T> values(const ParameterSet<T>& set) {
  std::vector<T> all;
  for (const auto& p : set) all.insert(all.end(), p.value.begin(), p.value.end());
  return all;
}

template <class T>
void step(Optimizer<T>& optimizer, ParameterSet<T>& set, std::vector<T> gradient) {
  optimizer.step(set, std::span<T>(gradient));
}

void check_near(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("sgd, with and without momentum") {
  auto set = three<double>();
  auto plain = make_optimizer<double>({.rule = UpdateRule::sgd, .learning_rate = 0.5}, 3);
  step(*plain, set, {1, -2, 0.5});
  check_near(values(set), {0.5, 3, 2.75});
  set = three<double>();
  auto heavy = make_optimizer<double>({.rule = UpdateRule::sgd, .learning_rate = 0.5, .momentum = 0.5}, 3);
  step(*heavy, set, {1, -2, 0});
  step(*heavy, set, {1, 1, 2});  // v = 1.5, 0, 2
  check_near(values(set), {0.5 - 0.75, 3, 2});
}

TEST_CASE("rmsprop") {
  auto set = three<double>();
  auto rule = make_optimizer<double>({.rule = UpdateRule::rmsprop, .learning_rate = 0.1, .decay = 0.9, .epsilon = 1e-3}, 3);
  step(*rule, set, {1, -2, 0});
  step(*rule, set, {3, 0, 1});
  const double s1 = 0.1, s2 = 0.9 * 0.1 + 0.1 * 9;
  check_near(values(set), {1 - 0.1 / (std::sqrt(s1) + 1e-3) - 0.3 / (std::sqrt(s2) + 1e-3), 2 + 0.2 / (std::sqrt(0.4) + 1e-3),
                           3 - 0.1 / (std::sqrt(0.1) + 1e-3)});
}

TEST_CASE("rmsprop, centred and with momentum, as PyTorch's") {
  // torch.optim.RMSprop([1, 2, 3], lr=0.1, alpha=0.9, eps=1e-3, momentum=0.5, centered=True) on the gradients below
  auto set = three<double>();
  auto rule = make_optimizer<double>(
      {.rule = UpdateRule::rmsprop, .learning_rate = 0.1, .momentum = 0.5, .decay = 0.9, .centred = true, .epsilon = 1e-3}, 3);
  for (const auto& g : {std::vector<double>{1, -2, 0.5}, {3, 0, 1}, {-1, 0.25, 2}}) step(*rule, set, g);
  check_near(values(set), {0.031235236767575485, 2.5376483948904993, 1.6357942614409784});
  CHECK(rule->state().size() == 1 + 3 * 3);
  auto again = three<double>();
  auto resumed = make_optimizer<double>(
      {.rule = UpdateRule::rmsprop, .learning_rate = 0.1, .momentum = 0.5, .decay = 0.9, .centred = true, .epsilon = 1e-3}, 3);
  step(*resumed, again, {1, -2, 0.5});
  const auto kept = resumed->state();
  step(*resumed, again, {9, 9, 9});
  resumed->restore(kept);
  CHECK(resumed->state() == kept);
}

TEST_CASE("entries are clipped by value before the norm") {
  auto set = three<double>();
  step(*make_optimizer<double>({.rule = UpdateRule::sgd, .learning_rate = 1, .clip_value = 2}, 3), set, {1, -5, 7});
  check_near(values(set), {0, 4, 1});
  set = three<double>();
  step(*make_optimizer<double>({.rule = UpdateRule::sgd, .learning_rate = 1, .clip_value = 2, .clip = 1.5}, 3), set,
       {1, -5, 7});
  check_near(values(set), {1 - 0.5, 2 + 1, 3 - 1});
}

TEST_CASE("gradient noise: keyed by step and entry, with the published variance, after clipping") {
  const std::size_t n = 4001, pairs = 2001;  // noise is made in pairs; the last lacks its second entry
  ParameterSet<double> set;
  set.add("a", {n});
  const auto noise = [&](int step_count, Key key) {
    auto rule = make_optimizer<double>(
        {.rule = UpdateRule::sgd, .learning_rate = 1, .clip_value = 1e-9, .gradient_noise = 0.3, .noise = key}, n);
    std::vector<double> before;
    for (int t = 0; t < step_count; ++t) {
      before = values(set);
      step(*rule, set, std::vector<double>(n, 5.0));
    }
    auto moved = values(set);
    for (std::size_t i = 0; i < n; ++i) moved[i] = before[i] - moved[i];
    return moved;
  };
  const auto variance = [&](const std::vector<double>& x) {
    double squares = 0;
    for (double v : x) squares += v * v;
    return squares / n;
  };
  const auto first = noise(1, Key(1)), third = noise(3, Key(1));
  const double error = 5 * std::sqrt(2.0 / n);  // five standard errors of a Normal's variance
  CHECK(std::abs(variance(first) / 0.3 - 1) < error);
  CHECK(std::abs(variance(third) / (0.3 / std::pow(3.0, 0.55)) - 1) < error);
  CHECK(std::abs(variance(third) / 0.3 - 1) > error);  // a mutant: constant noise
  double mean = 0, fourth = 0, both = 0;
  for (double v : first) mean += v / n, fourth += v * v * v * v / n;
  for (std::size_t i = 0; i + pairs < n; ++i) both += first[i] * first[i + pairs] / (n - pairs);
  CHECK(std::abs(mean) < 5 * std::sqrt(0.3 / n));
  CHECK(std::abs(fourth / (3 * 0.3 * 0.3) - 1) < 5 * std::sqrt(96.0 / 9 / n));
  CHECK(std::abs(both) < 5 * 0.3 / std::sqrt(n - pairs));
  CHECK(noise(1, Key(1))[0] == doctest::Approx(first[0]).epsilon(1e-9));
  CHECK(std::abs(noise(1, Key(2))[0] - first[0]) > 1e-6);
}

TEST_CASE("adam") {
  auto set = three<double>();
  auto rule = make_optimizer<double>({.rule = UpdateRule::adam, .learning_rate = 0.1, .epsilon = 1e-3}, 3);
  step(*rule, set, {1, -2, 0});
  // The first step is g / (|g| + epsilon), for any averages.
  check_near(values(set), {1 - 0.1 / 1.001, 2 + 0.2 / 2.001, 3});
  step(*rule, set, {3, 0, 0});
  const double m = (0.9 * 0.1 + 0.1 * 3) / (1 - 0.81), v = (0.999 * 0.001 + 0.001 * 9) / (1 - 0.999 * 0.999);
  CHECK(values(set)[0] == doctest::Approx(1 - 0.1 / 1.001 - 0.1 * m / (std::sqrt(v) + 1e-3)).epsilon(1e-10));
}

TEST_CASE("weight decay is separate from the rule: every parameter shrinks by the rate, and the gradient's step is unchanged") {
  for (const auto& [name, which] : update_rules) {
    CAPTURE(name);
    OptimizerSettings how{.rule = which, .learning_rate = 0.1, .momentum = 0.5};
    how.warmup = 2;  // rates 0.05, then 0.1
    auto plain_rule = make_optimizer<double>(how, 3);
    how.weight_decay = 0.2;
    auto rule = make_optimizer<double>(how, 3);
    auto plain = three<double>(), set = three<double>();
    for (const auto& [gradient, keep] : {std::pair{std::vector<double>{1, -2, 0}, 0.99}, {{3, 0, 1}, 0.98}}) {
      const auto before = values(plain), shrunk = values(set);
      step(*plain_rule, plain, gradient);
      step(*rule, set, gradient);
      const auto after = values(plain);
      std::vector<double> expected;
      for (std::size_t i = 0; i < 3; ++i) expected.push_back(keep * shrunk[i] + (after[i] - before[i]));
      check_near(values(set), expected);
    }
  }
}

TEST_CASE("some parameters have a separate rule, the clipped norm includes all") {
  const OptimizerSettings adam{.rule = UpdateRule::adam, .learning_rate = 0.1},
      sgd{.rule = UpdateRule::sgd, .learning_rate = 0.5};
  auto set = three<double>();
  const auto rule = make_optimizer<double>(adam, sgd, "b", set);
  auto by_adam = three<double>(), by_sgd = three<double>();
  const auto adam_rule = make_optimizer<double>(adam, 3), sgd_rule = make_optimizer<double>(sgd, 3);
  std::vector<double> half_way;
  for (const auto& gradient : {std::vector<double>{1, -2, 0.5}, {3, 0, 1}}) {
    step(*rule, set, gradient);
    step(*adam_rule, by_adam, gradient);
    step(*sgd_rule, by_sgd, gradient);
    CHECK(values(set) == std::vector<double>{values(by_adam)[0], values(by_adam)[1], values(by_sgd)[2]});
    if (half_way.empty()) half_way = rule->state();
  }
  auto again = three<double>();
  const auto resumed = make_optimizer<double>(adam, sgd, "b", again);
  step(*resumed, again, {1, -2, 0.5});
  resumed->restore(half_way);
  CHECK(resumed->state() == half_way);
  step(*resumed, again, {3, 0, 1});
  CHECK(values(again) == values(set));
  CHECK_THROWS_AS(resumed->restore({1, 2}), InputError);

  auto clipped = three<double>();
  step(*make_optimizer<double>({.rule = UpdateRule::sgd, .learning_rate = 1, .clip = 1}, sgd, "a", clipped), clipped,
       {2, 3, 6});
  check_near(values(clipped), {1 - 0.5 * 2 / 7, 2 - 0.5 * 3 / 7, 3 - 6.0 / 7});

  ParameterSet<double> named;
  for (const auto* name : {"prior", "prior.logits", "priority"}) named.add(name, {1});
  step(*make_optimizer<double>({.rule = UpdateRule::sgd, .learning_rate = 1}, {.rule = UpdateRule::sgd, .learning_rate = 10},
                               "prior", named),
       named, {1, 1, 1});
  CHECK(values(named) == std::vector<double>{-10, -10, -1});
  CHECK_THROWS_AS(make_optimizer<double>(adam, sgd, "posterior", named), UsageError);
}

TEST_CASE("clipping uses the norm of all parameters together") {
  auto set = three<double>();
  auto rule = make_optimizer<double>({.rule = UpdateRule::sgd, .learning_rate = 1, .clip = 1}, 3);
  step(*rule, set, {2, 3, 6});  // norm 7
  check_near(values(set), {1 - 2.0 / 7, 2 - 3.0 / 7, 3 - 6.0 / 7});
  set = three<double>();
  step(*rule, set, {0.2, 0.3, 0.6});  // below the limit: unchanged
  check_near(values(set), {0.8, 1.7, 2.4});
}

TEST_CASE_TEMPLATE("a gradient that is not finite is an error, and moves no parameter", T, float, double) {
  for (T bad : {T(NAN), T(INFINITY), T(-INFINITY)}) {
    auto set = three<T>();
    auto rule = make_optimizer<T>({.clip = 1}, 3);
    std::vector<T> gradient{1, 1, bad};
    CHECK_THROWS_WITH_AS(rule->step(set, std::span<T>(gradient)),
                         "the gradient of b is not finite at step 0: try a smaller learning_rate, or clip", Error);
    CHECK(values(set) == values(three<T>()));
  }
  // Large but finite numbers are not an error.
  auto set = three<T>();
  auto rule = make_optimizer<T>({.clip = 1}, 3);
  std::vector<T> gradient{T(1e30), 0, 0};
  rule->step(set, std::span<T>(gradient));
  CHECK(std::isfinite(values(set)[0]));
}

TEST_CASE_TEMPLATE("state and restore continue bit for bit", T, float, double) {
  for (const auto& [name, which] : update_rules) {
    const OptimizerSettings settings{.rule = which,
                                     .learning_rate = 0.01,
                                     .momentum = 0.9,
                                     .clip = 2,
                                     .schedule = RateSchedule::cosine,
                                     .warmup = 3,
                                     .total_steps = 20};
    const auto gradient = [](int t) { return std::vector<T>{T(std::sin(t)), T(0.3 * t), T(1) / T(t + 3)}; };
    auto through = three<T>();
    auto whole = make_optimizer<T>(settings, 3);
    for (int t = 0; t < 12; ++t) step(*whole, through, gradient(t));
    auto set = three<T>();
    std::vector<double> saved;
    {
      auto first = make_optimizer<T>(settings, 3);
      for (int t = 0; t < 5; ++t) step(*first, set, gradient(t));
      saved = first->state();
    }
    auto second = make_optimizer<T>(settings, 3);
    second->restore(saved);
    CHECK(second->state() == saved);
    for (int t = 5; t < 12; ++t) step(*second, set, gradient(t));
    CHECK(values(set) == values(through));
    CHECK(second->state() == whole->state());
    saved.pop_back();
    if (which != UpdateRule::sgd) CHECK_THROWS_AS(second->restore(saved), InputError);
  }
}

TEST_CASE("schedules") {
  OptimizerSettings s{.learning_rate = 2, .floor = 0.1, .warmup = 4, .total_steps = 14};
  CHECK(learning_rate(s, 0) == doctest::Approx(0.5));
  CHECK(learning_rate(s, 3) == doctest::Approx(2));
  CHECK(learning_rate(s, 1000) == doctest::Approx(2));
  s.schedule = RateSchedule::linear;
  CHECK(learning_rate(s, 1) == doctest::Approx(1));
  CHECK(learning_rate(s, 4) == doctest::Approx(2));
  CHECK(learning_rate(s, 9) == doctest::Approx(2 * 0.55));
  CHECK(learning_rate(s, 14) == doctest::Approx(0.2));
  CHECK(learning_rate(s, 99) == doctest::Approx(0.2));
  s.schedule = RateSchedule::cosine;
  CHECK(learning_rate(s, 4) == doctest::Approx(2));
  CHECK(learning_rate(s, 9) == doctest::Approx(2 * 0.55));
  CHECK(learning_rate(s, 99) == doctest::Approx(0.2));
  s = {.learning_rate = 2, .schedule = RateSchedule::step, .floor = 0.1, .drop = 0.5, .drop_every = 10};
  CHECK(learning_rate(s, 9) == doctest::Approx(2));
  CHECK(learning_rate(s, 10) == doctest::Approx(1));
  CHECK(learning_rate(s, 29) == doctest::Approx(0.5));
  CHECK(learning_rate(s, 500) == doctest::Approx(0.2));
}

TEST_CASE("impossible schedules are rejected") {
  CHECK_THROWS_AS(make_optimizer<float>({.schedule = RateSchedule::linear}, 1), UsageError);
  CHECK_THROWS_AS(make_optimizer<float>({.schedule = RateSchedule::step}, 1), UsageError);
}

TEST_CASE("the sum of squares, of any length") {
  for (const std::size_t length : {0, 1, 31, 32, 33, 64, 200}) {
    CAPTURE(length);
    std::vector<float> x;
    double squares = 0;
    for (std::size_t i = 0; i < length; ++i) {
      x.push_back(0.1f * static_cast<float>(i) - 3);
      squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    CHECK(squared_norm<float>(x) == doctest::Approx(squares).epsilon(1e-14));
  }
  CHECK(std::isnan(squared_norm<double>(std::vector<double>{1, std::nan(""), 2})));
}

}  // namespace hardgrad::testing::optimizer_test
