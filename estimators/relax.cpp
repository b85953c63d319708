// relax: the score function with a learned control variate on relaxed choices.
//
//   g = (f(b) - c(w~)) grad log p(b) + grad c(w) - grad c(w~) + grad f(b),   w = softmax(z / temperature)
//   c = c_phi(w, state) + eta f(w)
//
// Grathwohl, Choi, Wu, Roeder & Duvenaud 2018, Backpropagation through the void, sec. 3 (RELAX), with the
// choice b made by the noise z and z~ drawn given b. c_phi is a network with one layer of tanh units. It descends the
// squared norm of g, whose derivative in phi needs that of c's slope along a fixed direction: a central difference of c.
// `relaxed_model` adds eta times the loss of the relaxed network (as they do too), as `rebar` has it.
// Target: expected loss. Bias: none. Cost per sample: 1 row; 2 with the relaxed model (1 + T where choices feed later
// ones, two relaxed rows more where the temperature is being tuned).
// Departures: z~ is z, derived from numbers held given b. Every choice has a c of its own, which sees the weights of that
// choice and the network's state (detached) as it asked, at a fixed temperature. The squared norm is taken at the
// logits of each sample's choices.
#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/relaxation/relaxed_control.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {
namespace {

template <class T>
class Relax final : public Estimator<T> {
 public:
  Relax(const Settings& settings, const Structure& structure, Key init)
      : samples_(settings.integer("samples")),
        temperature_(settings.real("temperature")),
        options_(structure.most_options()),
        credit_(credit_of(settings)) {
    const auto width = static_cast<std::size_t>(settings.integer("hidden"));
    hidden_ = Linear<T>(this->own_, "control.hidden", structure.state_width() + options_, width, init);
    out_ = Linear<T>(this->own_, "control.out", width, 1, init);
    if (!settings.flag("relaxed_model")) return;
    eta_ = &this->own_.add("relax.eta", {1});
    log_temperature_ = &this->own_.add("relax.log_temperature", {1});
    eta_->value.data[0] = static_cast<T>(settings.real("eta"));
    log_temperature_->value.data[0] = static_cast<T>(std::log(temperature_));
  }
  bool exchangeable() const override { return false; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const bool learning = problem.learning;
    const double eta = eta_ ? eta_->value.data[0] : 0;
    RelaxedRun<T> run(problem, samples_, true, temperatures(learning));
    const auto networks = control_networks(problem.tape, run);

    const auto share = 1 / static_cast<double>(run.groups());
    double in_eta = 0, in_log_temperature = 0;
    std::vector<std::vector<double>> in_value(run.steps(), std::vector<double>(run.groups()));
    std::vector<std::vector<double>> direction(run.steps(), std::vector<double>(run.groups() * options_));
    auto surrogate = run.surrogate(credit_, [&](int t, std::size_t i, double f, const auto& controls) {
      const auto& choice = run.choice(t, i);
      const auto score = choice.score();
      const auto slope = std::span(networks[t].slope).subspan(i * options_, score.size());
      auto g = choice.control(temperature_, static_cast<double>(networks[t].value.value().data[i]), slope, slope);
      add_scaled(g, f, score);
      if (eta_) add_scaled(g, eta, controls[0]);
      if (!learning) return g;
      in_value[t][i] = -2 * share * dot(g, score);  // of the mean |g|^2 in c, and below in its slope
      const auto towards = choice.direction(temperature_, g);
      std::copy(towards.begin(), towards.end(), direction[t].begin() + static_cast<std::ptrdiff_t>(i * options_));
      if (eta_) {
        in_eta += 2 * share * dot(g, controls[0]);
        in_log_temperature += share * eta * (dot(g, controls[1]) - dot(g, controls[2])) / difference;
      }
      return g;
    });

    const double loss = run.run().mean_loss();
    Estimate<T> estimate{.surrogate = surrogate, .episode = nullptr, .loss = loss};
    if (learning) {
      auto& tape = problem.tape;
      auto own = tape.constant(1, 1);
      for (int t = 0; t < run.steps(); ++t) {
        own = add(own, weighted_sum(networks[t].value, std::span<const double>(in_value[t])));
        own = add(own, slope_along(networks[t], direction[t], 2 * share));
      }
      if (eta_)
        own = add(own, add(sum(tape.parameter(*eta_), in_eta), sum(tape.parameter(*log_temperature_), in_log_temperature)));
      estimate.own_loss = own;
    }
    estimate.episode = run.run().release();
    return estimate;
  }

 private:
  /// c of all groups at one step.
  struct Control {
    Var<T> weights, state;      ///< [groups, S], [groups, C]
    Var<T> value;               ///< [groups, 1]
    std::vector<double> slope;  ///< [groups, S]
  };
  Var<T> network(Var<T> weights, Var<T> state) const { return out_(tanh(hidden_(concat_columns({weights, state})))); }

  std::vector<double> temperatures(bool learning) const {
    if (!eta_) return {};
    // Within bounds: tuning may run away, and beyond them nothing changes but rounding.
    const double temperature = std::exp(std::clamp(static_cast<double>(log_temperature_->value.data[0]), -6.0, 6.0));
    if (!learning) return {temperature};
    return {temperature, temperature * std::exp(difference), temperature * std::exp(-difference)};
  }

  std::vector<Control> control_networks(Tape<T>& tape, RelaxedRun<T>& run) const {
    std::vector<Control> all;
    auto total = tape.constant(1, 1);
    for (int t = 0; t < run.steps(); ++t) {
      std::vector<T> weights(run.groups() * options_);
      std::vector<int> row(run.groups());
      for (std::size_t g = 0; g < run.groups(); ++g) {
        row[g] = run.run().forking(t)[g].row;
        if (run.choice(t, g).log_p.empty()) continue;
        const auto w = relaxed(run.choice(t, g).free, temperature_);
        std::copy(w.begin(), w.end(), weights.begin() + static_cast<std::ptrdiff_t>(g * options_));
      }
      Control control;
      control.weights = tape.input({weights.data(), run.groups(), options_});
      control.state = gather_rows(tape.detach(run.run().episode().steps()[t].question.site.state), std::span<const int>(row));
      control.value = network(control.weights, control.state);
      total = add(total, sum(control.value));
      all.push_back(std::move(control));
    }
    tape.backward(total);
    for (auto& control : all) {
      const auto slope = tape.gradient(control.weights);
      control.slope.assign(slope.data, slope.data + slope.size());
    }
    return all;
  }

  /// factor * sum over groups of direction . dc/dw, by a central difference that is differentiable in phi.
  Var<T> slope_along(const Control& control, const std::vector<double>& direction, double factor) const {
    auto& tape = *control.value.tape;
    const std::size_t groups = control.value.rows();
    auto move = tape.constant(groups, options_);
    std::vector<double> weight(groups);
    for (std::size_t g = 0; g < groups; ++g) {
      const auto d = std::span(direction).subspan(g * options_, options_);
      const double length = std::sqrt(dot(d, d));
      if (length == 0) continue;
      for (std::size_t i = 0; i < options_; ++i) tape.mutable_value(move)(g, i) = static_cast<T>(difference * d[i] / length);
      weight[g] = factor * length / (2 * difference);
    }
    const auto above = network(add(control.weights, move), control.state);
    const auto below = network(subtract(control.weights, move), control.state);
    return weighted_sum(subtract(above, below), std::span<const double>(weight));
  }

  static constexpr double difference = 0.02;  // of the log temperature, and of the weights
  int samples_;
  double temperature_;
  std::size_t options_;
  Credit credit_;
  Linear<T> hidden_, out_;
  Parameter<T>*eta_ = nullptr, *log_temperature_ = nullptr;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "relax",
    .summary = "score function with a learned control variate on relaxed choices",
    .paper = "Grathwohl, Choi, Wu, Roeder & Duvenaud 2018, Backpropagation through the void, sec. 3",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K; with relaxed_model 2 K, (1 + T) K if sequential",
    .parameters = {samples_parameter(), ParameterInfo::integer("hidden", 10, 1, 65536, "tanh units of the control network"),
                   ParameterInfo::real("temperature", 0.5, 0, 1e6, "of the relaxation the control sees").above(),
                   ParameterInfo::flag("relaxed_model", false, "add the loss of the relaxed network to the control"),
                   ParameterInfo::real("eta", 1, -1e6, 1e6, "weight of the relaxed network's loss, at first"),
                   credit_parameter()},
    .needs = {need::relaxable, need::one_column},
};
HARDGRAD_ESTIMATOR(Relax, entry)

}  // namespace hardgrad
