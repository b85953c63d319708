// The update rules with their formulas; g is the gradient, clipped and with noise, a the learning rate of the step.
#include "core/nn/optimizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "core/kernels/functions.hpp"
#include "core/random/randomness.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

// Linear warm-up over `warmup` steps, then from 1 to `floor` times the rate. With q the completed fraction of the steps after
// the warm-up: linear: 1 - (1 - floor) q; cosine: floor + (1 - floor) (1 + cos(pi q)) / 2;
// step: drop^(steps after the warm-up / drop_every, rounded down).
double learning_rate(const OptimizerSettings& s, int step) {
  if (step < s.warmup) return s.learning_rate * (step + 1) / s.warmup;
  const int after = step - s.warmup;
  const double q = std::clamp(static_cast<double>(after) / std::max(1, s.total_steps - s.warmup), 0.0, 1.0);
  double share = 1;
  switch (s.schedule) {
    case RateSchedule::constant: break;
    case RateSchedule::linear: share = 1 - (1 - s.floor) * q; break;
    case RateSchedule::cosine: share = s.floor + (1 - s.floor) * (1 + std::cos(std::numbers::pi * q)) / 2; break;
    case RateSchedule::step:
      if (s.drop_every > 0) share = std::max(s.floor, std::pow(s.drop, after / s.drop_every));
  }
  return s.learning_rate * share;
}

namespace {

/// Selects the parameters that a rule updates; empty: all.
using Whose = std::function<bool(const std::string& name)>;

/// Shared by all rules: the finiteness check, clipping, the step count, and `averages` vectors of state.
template <class T>
class Rule : public Optimizer<T> {
 public:
  Rule(const OptimizerSettings& settings, std::size_t parameters, std::size_t averages)
      : settings_(settings), parameters_(parameters), averages_(averages, std::vector<T>(parameters)) {}
  void is_for(Whose whose) { whose_ = std::move(whose); }

  void step(ParameterSet<T>& set, std::span<T> gradient) final {
    if (gradient.size() != set.size() || parameters_ != set.size())
      throw Bug("optimizer: sizes of gradient, parameters and state differ");
    double norm = checked_norm(set, gradient);
    if (settings_.clip_value > 0) {
      const T most = static_cast<T>(settings_.clip_value);
      for (T& g : gradient) g = std::clamp(g, -most, most);
      norm = checked_norm(set, gradient);
    }
    if (settings_.clip > 0 && norm > settings_.clip) {
      const T scale = static_cast<T>(settings_.clip / norm);
      for (T& g : gradient) g *= scale;
    }
    if (settings_.gradient_noise > 0) add_noise(gradient);
    const double rate = learning_rate(settings_, steps_++);
    if (settings_.weight_decay > 0) {  // decoupled, not added to the gradient: Loshchilov & Hutter 2019, algorithm 2
      const T keep = static_cast<T>(1 - rate * settings_.weight_decay);
      for (auto& p : set)
        if (takes(p.name))
          for (T& x : p.value) x *= keep;
    }
    for (auto& p : set)
      if (takes(p.name)) update(p.value.storage(), gradient.subspan(p.offset, p.value.size()), p.offset, rate);
  }

  std::vector<double> state() const final {
    std::vector<double> all{static_cast<double>(steps_)};
    for (const auto& average : averages_) all.insert(all.end(), average.begin(), average.end());
    return all;
  }

  void restore(const std::vector<double>& state) final {
    if (state.size() != 1 + averages_.size() * parameters_)
      throw InputError("optimizer state of " + std::to_string(state.size()) + " numbers where " +
                       name_of(settings_.rule, update_rules) + " on this network has " +
                       std::to_string(1 + averages_.size() * parameters_) + ": it was saved by another configuration");
    steps_ = static_cast<int>(state[0]);
    auto from = state.begin() + 1;
    for (auto& average : averages_)
      for (T& x : average) x = static_cast<T>(*from++);
  }

 protected:
  /// Updates one parameter `p`, whose state begins at `at`.
  virtual void update(std::span<T> p, std::span<const T> g, std::size_t at, double rate) = 0;
  T* average(std::size_t k, std::size_t at) { return averages_[k].data() + at; }
  const OptimizerSettings& settings() const { return settings_; }
  int steps() const { return steps_; }  ///< including the current one

 private:
  bool takes(const std::string& name) const { return !whose_ || whose_(name); }
  /// The global norm; throws if the gradient is not finite.
  double checked_norm(const ParameterSet<T>& set, std::span<const T> gradient) const {
    double squares = 0;
    for (const auto& p : set) {
      const double part = squared_norm(gradient.subspan(p.offset, p.value.size()));
      if (!std::isfinite(part))
        throw Error(1, "the gradient of " + p.name + " is not finite at step " + std::to_string(steps_) +
                           ": try a smaller learning_rate, or clip");
      squares += part;
    }
    return std::sqrt(squares);
  }
  // Box & Muller 1958: a radius and an angle give the noise of two entries, p and p + pairs.
  void add_noise(std::span<T> gradient) const {
    KeyedRandomness random(settings_.noise);
    const kernels::Batch<T> deviation(static_cast<T>(std::sqrt(settings_.gradient_noise / std::pow(1.0 + steps_, 0.55))));
    const std::size_t pairs = (gradient.size() + 1) / 2;
    std::array<T, 512> radius, angle;  // NOLINT: the first m are set
    for (std::size_t first = 0; first < pairs; first += radius.size()) {
      const std::size_t m = std::min(radius.size(), pairs - first);
      for (std::size_t i = 0; i < m; ++i) {
        Draw where{.step = static_cast<std::uint32_t>(steps_), .column = static_cast<std::uint32_t>(first + i)};
        radius[i] = static_cast<T>(random.uniform(where));
        where.index = 1;
        angle[i] = static_cast<T>(2 * std::numbers::pi * random.uniform(where));
      }
      kernels::for_lanes<T>(m, [&](auto lane) {
        const auto r = deviation * xsimd::sqrt(kernels::Batch<T>(T{-2}) * kernels::log<T>(lane.load(radius.data())));
        const auto [sine, cosine] = xsimd::sincos(lane.load(angle.data()));
        lane.store(radius.data(), r * cosine);
        lane.store(angle.data(), r * sine);
      });
      for (std::size_t i = 0; i < m; ++i) {
        gradient[first + i] += radius[i];
        if (const auto other = first + i + pairs; other < gradient.size()) gradient[other] += angle[i];
      }
    }
  }

  OptimizerSettings settings_;
  std::size_t parameters_;
  int steps_ = 0;
  std::vector<std::vector<T>> averages_;
  Whose whose_;
};

// v <- momentum v + g; p <- p - a v. Without momentum there is no v.
template <class T>
class Sgd final : public Rule<T> {
 public:
  Sgd(const OptimizerSettings& s, std::size_t n) : Rule<T>(s, n, s.momentum != 0 ? 1 : 0) {}

 private:
  void update(std::span<T> p, std::span<const T> g, std::size_t at, double rate) override {
    const T a = static_cast<T>(rate), momentum = static_cast<T>(this->settings().momentum);
    if (momentum == 0) {
      for (std::size_t i = 0; i < p.size(); ++i) p[i] -= a * g[i];
      return;
    }
    T* v = this->average(0, at);
    for (std::size_t i = 0; i < p.size(); ++i) {
      v[i] = momentum * v[i] + g[i];
      p[i] -= a * v[i];
    }
  }
};

// s <- d s + (1 - d) g^2; p <- p - a g / (sqrt(s) + epsilon)   (Hinton's lecture 6e; epsilon as in PyTorch)
// centred: m <- d m + (1 - d) g, and s - m^2 for s in the divisor; momentum: v <- momentum v + g / divisor; p <- p - a v
// (Graves 2013, Generating sequences with recurrent neural networks, eq. 38-41, but for the place of epsilon)
template <class T>
class RmsProp final : public Rule<T> {
 public:
  RmsProp(const OptimizerSettings& s, std::size_t n) : Rule<T>(s, n, 1 + s.centred + (s.momentum != 0)) {}

 private:
  void update(std::span<T> p, std::span<const T> g, std::size_t at, double rate) override {
    const auto& settings = this->settings();
    const T a = static_cast<T>(rate), d = static_cast<T>(settings.decay), momentum = static_cast<T>(settings.momentum);
    const T epsilon = static_cast<T>(settings.epsilon);
    T* s = this->average(0, at);
    T* m = settings.centred ? this->average(1, at) : nullptr;
    T* v = momentum != 0 ? this->average(m ? 2 : 1, at) : nullptr;
    for (std::size_t i = 0; i < p.size(); ++i) {
      s[i] = d * s[i] + (1 - d) * g[i] * g[i];
      if (m) m[i] = d * m[i] + (1 - d) * g[i];
      const T spread = m ? std::max(T{0}, s[i] - m[i] * m[i]) : s[i];
      const T divisor = std::sqrt(spread) + epsilon;
      if (v)
        p[i] -= a * (v[i] = momentum * v[i] + g[i] / divisor);
      else
        p[i] -= a * g[i] / divisor;
    }
  }
};

// m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2; p <- p - a m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) +
// epsilon) (Kingma & Ba 2015, algorithm 1)
template <class T>
class Adam final : public Rule<T> {
 public:
  Adam(const OptimizerSettings& s, std::size_t n) : Rule<T>(s, n, 2) {}

 private:
  void update(std::span<T> p, std::span<const T> g, std::size_t at, double rate) override {
    const auto& s = this->settings();
    const T b1 = static_cast<T>(s.beta1), b2 = static_cast<T>(s.beta2), epsilon = static_cast<T>(s.epsilon);
    const T a = static_cast<T>(rate / (1 - std::pow(s.beta1, this->steps())));
    const T unbias = static_cast<T>(1 / (1 - std::pow(s.beta2, this->steps())));
    T *m = this->average(0, at), *v = this->average(1, at);
    for (std::size_t i = 0; i < p.size(); ++i) {
      m[i] = b1 * m[i] + (1 - b1) * g[i];
      v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
      p[i] -= a * m[i] / (std::sqrt(v[i] * unbias) + epsilon);
    }
  }
};

/// One rule for some parameters, and another for the rest.
template <class T>
class InParts final : public Optimizer<T> {
 public:
  InParts(std::unique_ptr<Optimizer<T>> first, std::unique_ptr<Optimizer<T>> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  void step(ParameterSet<T>& set, std::span<T> gradient) override {
    first_->step(set, gradient);
    second_->step(set, gradient);
  }
  std::vector<double> state() const override {
    auto all = first_->state();
    const auto more = second_->state();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void restore(const std::vector<double>& state) override {
    const auto middle = state.begin() + static_cast<std::ptrdiff_t>(std::min(first_->state().size(), state.size()));
    first_->restore({state.begin(), middle});
    second_->restore({middle, state.end()});
  }

 private:
  std::unique_ptr<Optimizer<T>> first_, second_;
};

template <class R>
std::unique_ptr<R> rule(const OptimizerSettings& s, std::size_t parameters, Whose whose) {
  auto made = std::make_unique<R>(s, parameters);
  made->is_for(std::move(whose));
  return made;
}

template <class T>
std::unique_ptr<Optimizer<T>> make_rule(const OptimizerSettings& s, std::size_t parameters, Whose whose) {
  if (s.has_horizon() && s.total_steps <= s.warmup)
    throw UsageError(std::string("optimizer: schedule \"") + name_of(s.schedule, rate_schedules) +
                     "\" needs total_steps above warmup, got " + std::to_string(s.total_steps));
  if (s.schedule == RateSchedule::step && s.drop_every <= 0)
    throw UsageError("optimizer: schedule \"step\" needs drop_every of at least 1");
  switch (s.rule) {
    case UpdateRule::sgd: return rule<Sgd<T>>(s, parameters, std::move(whose));
    case UpdateRule::rmsprop: return rule<RmsProp<T>>(s, parameters, std::move(whose));
    case UpdateRule::adam: return rule<Adam<T>>(s, parameters, std::move(whose));
  }
  throw Bug("an optimiser has no rule");
}

}  // namespace

template <class T>
double squared_norm(std::span<const T> x) {
  constexpr std::size_t lanes = 32;  // sums that do not wait for each other
  std::array<double, lanes> sums{};
  const std::size_t whole = x.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
  for (std::size_t i = whole; i < x.size(); ++i) sums[i - whole] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}
template double squared_norm(std::span<const float>);
template double squared_norm(std::span<const double>);

template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerSettings& s, std::size_t parameters) {
  return make_rule<T>(s, parameters, {});
}

template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerSettings& settings, OptimizerSettings of_part,
                                             const std::string& part, const ParameterSet<T>& set) {
  const Whose in_part = [part](const std::string& name) { return name == part || name.starts_with(part + "."); };
  if (std::none_of(set.begin(), set.end(), [&](const auto& p) { return in_part(p.name); }))
    throw UsageError("optimizer: the network has no parameters \"" + part + "\"");
  of_part.clip = of_part.clip_value = of_part.gradient_noise = 0;  // the whole gradient is changed once, by `settings`
  return std::make_unique<InParts<T>>(
      make_rule<T>(settings, set.size(), [in_part](const std::string& name) { return !in_part(name); }),
      make_rule<T>(of_part, set.size(), in_part));
}

template std::unique_ptr<Optimizer<float>> make_optimizer(const OptimizerSettings&, std::size_t);
template std::unique_ptr<Optimizer<double>> make_optimizer(const OptimizerSettings&, std::size_t);

template std::unique_ptr<Optimizer<float>> make_optimizer(const OptimizerSettings&, OptimizerSettings, const std::string&,
                                                          const ParameterSet<float>&);
template std::unique_ptr<Optimizer<double>> make_optimizer(const OptimizerSettings&, OptimizerSettings, const std::string&,
                                                           const ParameterSet<double>&);

}  // namespace hardgrad
