// muprop: the score function minus the loss's first-order Taylor expansion around the deterministic network.
//
//   g = 1/K sum_k sum_t [ (f(z) - a f(m) - b sum_u f'_u . (z_u - m_u) - C(state_t)) grad log p(z_t | z_<t)
//                         + b f'_t . grad p_t(z_<t) ] + grad f(z)
//
// Gu, Levine, Sutskever & Mnih 2016, MuProp: unbiased backpropagation for stochastic neural networks, sec. 3: a = b = 1, C = 0.
// m are the expected weights of the deterministic (mean-field) run, f'_t is the derivative of its loss in the weights of choice
// t. Given z_<t the term of t has the mean f'_t . grad p_t, which is added back. Terms of earlier choices are constants; so are
// those of later choices, if choices are independent. u runs over all of these.
// `learned`: the baseline beside the expansion, as in the comparison of Tucker et al. 2017 (REBAR, their code): a, b and the
// network C of the state (that of nvil) descend the squared signal, the factor of grad log p.
// Target: expected loss. Bias: none, with any a, b and C. Cost: K + 1 rows.
// Departures: where choices feed later ones, the terms of later choices are omitted, since their means depend on z_t. With
// reward_to_go, the expansion of choice t is that of the costs from t on, in choice t alone. a and b are shared by all choices
// (Tucker et al.: by those of a layer).
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/score_function/learned_baseline.hpp"

namespace hardgrad::estimators::muprop {
namespace {

struct Config {
  int samples = 1;
  double level = 1, slope = 1;
  bool learned = false;
  int hidden = 100;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(level, "level", -1e6, 1e6, "weight a of the deterministic network's loss");
    field(slope, "slope", -1e6, 1e6, "weight b of its derivative's term");
    field(learned, "learned", "learn both weights, and a baseline that depends on the network's state");
    field(hidden, "hidden", 1, 65536, "tanh units of the baseline network");
    credit_field(field, credit);
  }
};

template <class T>
class MuProp final : public Estimator<T> {
 public:
  MuProp(const Config& config, const Structure& structure, Key init) : config_(config), independent_(structure.independent()) {
    if (!config.learned) return;
    baseline_ = {this->own_, "baseline", structure, static_cast<std::size_t>(config.hidden), init};
    learned_a_ = &this->own_.add("muprop.level", {1});
    learned_b_ = &this->own_.add("muprop.slope", {1});
    learned_a_->value.flat(0) = static_cast<T>(config_.level);
    learned_b_->value.flat(0) = static_cast<T>(config_.slope);
  }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ExpectedHandler<T> expected;
    Sampled<T> mean(problem, 1, expected), sampled(problem, config_.samples);
    problem.tape.backward(mean.path(), static_cast<T>(mean.rows()));  // gradient of the sum over examples: each has its own f'
    const auto choices = sampled.choices();
    const auto& z = choices.one_hot();
    const auto [slope, m] = expansion(problem.tape, mean, choices);
    const auto f = sampled.returns(config_.credit, choices.layout()), f_m = returns_at_mean(mean, choices.layout());

    const auto term = dot(slope, z - m);  // f'_u . (z_u - m_u)
    const auto taken = config_.credit == Credit::reward_to_go ? sampled.sum_of_own_step(term)
                                                              : sum(term, independent_ ? Along::all : Along::so_far);
    const double a = learned_a_ ? learned_a_->value.flat(0) : config_.level,
                 b = learned_b_ ? learned_b_->value.flat(0) : config_.slope;
    PerChoice signal = f - a * f_m - b * taken;
    const auto own_loss = learned_a_ ? with_baseline(signal, sampled, f_m, taken) : Var<T>();
    const AtLogits g = signal * choices.score() + b * through_softmax(choices.p(), slope);

    Estimate<T> estimate{
        .surrogate = add(sampled.path(), choices.surrogate(g)), .own_loss = own_loss, .loss = sampled.mean_loss()};
    estimate.episode = sampled.release();
    estimate.others.push_back(mean.release());
    return estimate;
  }

 private:
  struct Expansion {
    AtLogits slope, m;
  };
  /// f' and the weights m of the mean-field run of each sample's example.
  Expansion expansion(Tape<T>& tape, Sampled<T>& mean, const Choices<T>& choices) const {
    Expansion at{choices.zeros(), choices.zeros()};
    const auto& layout = *choices.layout();
    for (std::size_t t = 0; t < layout.steps.size(); ++t) {
      const auto weights = mean.episode().steps()[t].choice.weights();
      const auto slope = tape.gradient(weights), m = weights.value();
      const auto& step = layout.steps[t];
      for (std::size_t i = 0; i < layout.samples * step.columns; ++i) {
        const std::size_t c = step.choice + i, of_mean = i / step.columns / config_.samples * step.columns + i % step.columns;
        if (layout.options[c] == 1) continue;
        for (int o = 0; o < layout.options[c]; ++o) {
          at.slope.value[layout.logit[c] + o] = static_cast<double>(slope(of_mean, o));
          at.m.value[layout.logit[c] + o] = static_cast<double>(m(of_mean, o));
        }
      }
    }
    return at;
  }
  PerChoice returns_at_mean(const Sampled<T>& mean, const std::shared_ptr<const ChoiceLayout>& layout) const {
    PerChoice result{layout, std::vector<double>(layout->choices())};
    for (std::size_t t = 0; t < layout->steps.size(); ++t) {
      const auto of_mean = mean.returns(static_cast<int>(t), config_.credit);  // [B], or by column [B, D]
      const std::size_t D = layout->steps[t].columns, columns = mean.columns(static_cast<int>(t), config_.credit);
      for (std::size_t i = 0; i < layout->samples * D; ++i)
        result.value[layout->steps[t].choice + i] = of_mean[i / D / config_.samples * columns + (columns > 1 ? i % D : 0)];
    }
    return result;
  }
  /// Subtracts C(state) from the signal; the loss whose gradient is that of the mean squared signal, summed over the steps.
  Var<T> with_baseline(PerChoice& signal, Sampled<T>& sampled, const PerChoice& f_m, const PerChoice& taken) const {
    auto& tape = sampled.episode().tape();
    auto loss = tape.constant(1, 1);
    double in_a = 0, in_b = 0;
    const auto& layout = *signal.of;
    for (std::size_t t = 0; t < layout.steps.size(); ++t) {
      const auto& step = layout.steps[t];
      const std::size_t D = sampled.columns(static_cast<int>(t), config_.credit);
      const auto C = baseline_.at(sampled.episode().steps()[t], D);  // [samples, D]
      std::vector<double> weight(layout.samples * D);                // of C: the derivative of the mean square
      for (std::size_t i = 0; i < layout.samples * step.columns; ++i) {
        const std::size_t c = step.choice + i, n = i / step.columns, d = i % step.columns;
        signal.value[c] -= static_cast<double>(C.value()(n, D > 1 ? d : 0));
        if (layout.options[c] == 1 || d >= D) continue;  // no choice; the same signal as the first column's
        const double w = weight[n * D + d] = -2 * signal.value[c] / static_cast<double>(weight.size());
        in_a += w * f_m.value[c];
        in_b += w * taken.value[c];
      }
      loss = add(loss, weighted_sum(C, std::span<const double>(weight)));
    }
    return add(loss, add(sum(tape.parameter(*learned_a_), in_a), sum(tape.parameter(*learned_b_), in_b)));
  }
  Config config_;
  bool independent_;
  LearnedBaseline<T> baseline_;
  Parameter<T>*learned_a_ = nullptr, *learned_b_ = nullptr;
};

constexpr const char* as_published = "level=1,slope=1,learned=false";

}  // namespace

const EstimatorEntry entry = {
    .name = "muprop",
    .summary = "score function with the Taylor expansion around the deterministic network as control variate",
    .paper = "Gu, Levine, Sutskever & Mnih 2016, MuProp: unbiased backpropagation for stochastic neural networks, sec. 3",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K + 1",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::noiseless(Promise::Loss::linear, as_published),
                 promise::noiseless(Promise::Loss::linear, std::string(as_published) + ",reward_to_go=true"),
                 promise::unshifted(as_published), promise::variance(2.156199495, "level=1,slope=1,learned=false"),
                 promise::same_moments("reinforce", "level=0,slope=0,learned=false"),
                 promise::noiseless_once_learned("level=0.5,learned=true,hidden=4")},
};
HARDGRAD_ESTIMATOR(MuProp, entry)

}  // namespace hardgrad::estimators::muprop
