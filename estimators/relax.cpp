// relax: the score function with a learned control variate on relaxed choices.
//
//   g = (f(b) - c(w~)) grad log p(b) + grad c(w) - grad c(w~) + grad f(b),   w = softmax(z / temperature)
//   c = eta f(w) + r(w, state)
//
// Grathwohl, Choi, Wu, Roeder & Duvenaud 2018, Backpropagation through the void, sec. 3 (RELAX), and sec. 3.3 for discrete
// choices of a known loss: c is the relaxed network's loss, as in `rebar`, plus a learned part r. The noise z determines the
// choice b; z~ is drawn given b. r is a network with one layer of tanh units. r, eta and the temperature of f(w) descend the
// squared norm of g; the derivative in r needs that of its slope along a fixed direction, which is a central difference.
// `relaxed_model=false`: c = r alone, for losses that take options only (the paper's black boxes).
// Target: expected loss. Bias: none. Cost per sample: 2 rows (1 + T where choices feed later ones, and two more relaxed rows
// while the temperature is tuned); 1 without the relaxed model.
// Departures: z~ equals z, differentiated with the numbers behind it held given b. Every choice has its own c, a function of
// the weights of that choice and of the network's state (detached) when it asked; r at a fixed temperature. The squared norm is
// taken at the logits of each sample's choices. eta is learned from 1 (theirs is 1).
#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"
#include "core/estimator/relaxation/relaxed_control.hpp"
#include "core/estimator/score_function/learned_baseline.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::estimators::relax {
namespace {

struct Config {
  int samples = 1, hidden = 10;
  double temperature = 0.5;
  bool relaxed_model = true;
  double eta = 1;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(hidden, "hidden", 1, 65536, "tanh units of the control network");
    field.temperature(temperature, "temperature",
                      "temperature of the control's relaxed input; initial one of the relaxed network");
    field(relaxed_model, "relaxed_model", "the control contains the loss of the relaxed network");
    field(eta, "eta", -1e6, 1e6, "initial weight of the relaxed network's loss");
    credit_field(field, credit);
  }
};

template <class T>
class Relax final : public Estimator<T> {
 public:
  Relax(const Config& config, const Structure& structure, Key init)
      : config_(config), options_(structure.most_options()), state_width_(structure.state_width()) {
    const auto width = static_cast<std::size_t>(config.hidden);
    hidden_ = Linear<T>(this->own_, "control.hidden", structure.state_width() + options_, width, init);
    out_ = Linear<T>(this->own_, "control.out", width, 1, init);
    if (!config.relaxed_model) return;
    eta_ = &this->own_.add("relax.eta", {1});
    log_temperature_ = &this->own_.add("relax.log_temperature", {1});
    eta_->value.flat(0) = static_cast<T>(config.eta);
    log_temperature_->value.flat(0) = static_cast<T>(std::log(config_.temperature));
  }
  bool exchangeable() const override { return false; }
  int copies() const override { return config_.samples; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const bool learning = problem.learning;
    const double eta = eta_ ? eta_->value.flat(0) : 0;
    RelaxedRun<T> run(problem, problem.one_copy ? 1 : config_.samples, true, temperatures(learning));
    const auto& choices = run.choices();
    const auto c = control_network(problem.tape, run);
    const auto f = run.losses(config_.credit);

    auto g = choices.gradient(config_.temperature, f - c.value, 1, RelaxedChoices::slope_of(c.w, c.slope));
    const auto control = [&](std::size_t i) { return run.gradient(i, -1 * run.relaxed_losses(i, config_.credit), 1); };
    AtLogits of_model;
    if (eta_) g.add(of_model = control(0), eta);

    Estimate<T> estimate{.surrogate = run.surrogate(g), .loss = run.run().mean_loss()};
    if (learning) {  // the gradient of |g|^2, averaged over the samples
      auto& tape = problem.tape;
      const double share = 1 / static_cast<double>(run.run().groups());
      const PerChoice in_value = -2 * share * dot(g, run.run().choices().score());
      estimate.own_loss = add(weighted_sum(c.values, std::span<const double>(in_value.value)),
                              slope_along(c, choices.direction(config_.temperature, g), 2 * share));
      if (eta_) {
        const auto in_temperature = (1 / difference) * (control(1) - control(2));
        estimate.own_loss =
            add(estimate.own_loss, add(sum(tape.parameter(*eta_), 2 * share * total(dot(g, of_model))),
                                       sum(tape.parameter(*log_temperature_), share * eta * total(dot(g, in_temperature)))));
      }
    }
    estimate.episode = run.run().release();
    return estimate;
  }

 private:
  /// c at every choice.
  struct Control {
    Var<T> weights = {}, of_states = {};  ///< [choices, S], [states, H]
    std::vector<int> state = {};          ///< [choices] row of each choice in of_states
    Var<T> values = {};                   ///< [choices, 1]
    PerChoice value;
    AtLogits w, slope;  ///< the weights, and dc/dw
  };
  /// From the weights, and from the states' contribution to the tanh units, which is computed once per state.
  Var<T> network(Var<T> weights, const Control& control) const {
    const auto of_weights = slice_columns(weights.tape->parameter(*hidden_.weight), 0, options_);
    const std::span<const int> state(control.state);
    return out_(tanh(gather_sum<T>(state.size(), {{control.of_states, state}, {linear(weights, of_weights), {}}})));
  }

  std::vector<double> temperatures(bool learning) const {
    if (!eta_) return {};
    // Bounded, in case tuning diverges; outside, only rounding changes.
    const double temperature = std::exp(std::clamp(static_cast<double>(log_temperature_->value.flat(0)), -6.0, 6.0));
    if (!learning) return {temperature};
    return {temperature, temperature * std::exp(difference), temperature * std::exp(-difference)};
  }

  Control control_network(Tape<T>& tape, RelaxedRun<T>& run) const {
    const auto& choices = run.choices();
    const auto& layout = *choices.layout;
    Control control{.value = {choices.layout, std::vector<double>(layout.choices())},
                    .w = choices.weights(config_.temperature),
                    .slope = run.run().choices().zeros()};
    std::vector<T> weights(layout.choices() * options_);
    for_rows(layout, [&](std::size_t choice, std::size_t logit, std::size_t n) {
      std::copy_n(&control.w.value[logit], n, &weights[choice * options_]);
    });
    std::vector<Var<T>> states;
    for (std::size_t t = 0, before = 0; t < layout.steps.size(); ++t) {
      for (int asking : run.run().choices().asking(static_cast<int>(t)))
        control.state.insert(control.state.end(), layout.steps[t].columns, static_cast<int>(before) + asking);
      states.push_back(state_of(run.run().episode().steps()[t].question, state_width_));
      before += states.back().rows();
    }
    control.of_states =
        linear(stack_rows(std::span<const Var<T>>(states)),
               slice_columns(tape.parameter(*hidden_.weight), options_, state_width_), tape.parameter(*hidden_.bias));
    control.weights = tape.input({weights.data(), layout.choices(), options_});
    control.values = network(control.weights, control);
    tape.backward_to_inputs(sum(control.values));
    const auto slope = tape.gradient(control.weights);
    std::copy_n(control.values.value().data, layout.choices(), control.value.value.begin());
    for_rows(layout, [&](std::size_t choice, std::size_t logit, std::size_t n) {
      std::copy_n(slope.row(choice), n, &control.slope.value[logit]);
    });
    for (std::size_t c = 0; c < layout.choices(); ++c)  // 0 beyond the options of a choice
      for (std::size_t i = layout.logit[c] + layout.options[c]; i < layout.logit[c + 1]; ++i) control.slope.value[i] = 0;
    return control;
  }

  /// Calls f(choice, its first logit, count): entries that are adjacent both in a layout and in [choices, S].
  template <class F>
  void for_rows(const ChoiceLayout& layout, F f) const {
    for (const auto& step : layout.steps) {
      const std::size_t choices = layout.samples * step.columns;
      if (step.options == options_)
        f(step.choice, step.logit, choices * options_);
      else
        for (std::size_t c = 0; c < choices; ++c) f(step.choice + c, step.logit + c * step.options, step.options);
    }
  }

  /// factor * sum over choices of direction . dc/dw, by a central difference that is differentiable in phi.
  Var<T> slope_along(const Control& control, const AtLogits& direction, double factor) const {
    auto& tape = *control.values.tape;
    const auto& layout = *direction.of;
    auto move = tape.constant(layout.choices(), options_);
    auto weight = dot(direction, direction).value;
    for (std::size_t c = 0; c < layout.choices(); ++c) {
      const double length = std::sqrt(weight[c]);
      if (length == 0) continue;
      for (int i = 0; i < layout.options[c]; ++i)
        tape.mutable_value(move)(c, i) = static_cast<T>(difference * direction.value[layout.logit[c] + i] / length);
      weight[c] = factor * length / (2 * difference);
    }
    const auto above = network(add(control.weights, move), control);
    const auto below = network(subtract(control.weights, move), control);
    return weighted_sum(subtract(above, below), std::span<const double>(weight));
  }

  static constexpr double difference = 0.02;  // of the log temperature, and of the weights
  Config config_;
  std::size_t options_, state_width_;
  Linear<T> hidden_, out_;
  Parameter<T>*eta_ = nullptr, *log_temperature_ = nullptr;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "relax",
    .summary = "score function with the relaxed loss and a learned function of relaxed choices as control variate",
    .paper = "Grathwohl, Choi, Wu, Roeder & Duvenaud 2018, Backpropagation through the void, sec. 3",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations =
        "K; 2 K if relaxed_model; 4 K if relaxed_model and learning; (1 + Q) K if relaxed_model and sequential; (1 + 3 Q) K if "
        "relaxed_model and sequential and learning",
    .parameters = declared<Config>(),
    .needs = {need::categorical},
    .promises = {promise::descends_square("hidden=2,relaxed_model=false"),
                 promise::descends_square("hidden=2,relaxed_model=true")},
    .why_unsupported = [](const Config& config, const Structure& structure) -> std::string {
      const auto reason = config.relaxed_model ? unmet({need::relaxable}, structure) : std::nullopt;
      return reason ? *reason + ": take relax[relaxed_model=false]" : "";
    },
    .infinite_variance = [](const Config& config, const Structure& structure,
                            double) { return config.relaxed_model ? no_variance_of_slopes(structure) : ""; },
};
HARDGRAD_ESTIMATOR(Relax, entry)

}  // namespace hardgrad::estimators::relax
