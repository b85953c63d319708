// muprop: the score function minus the loss's first-order Taylor expansion around the deterministic network.
//
//   g = 1/K sum_k sum_t [ (f(z) - f(m) - sum_u f'_u . (z_u - m_u)) grad log p(z_t | z_<t) + f'_t . grad p_t(z_<t) ] + grad f(z)
//
// Gu, Levine, Sutskever & Mnih 2016, MuProp: unbiased backpropagation for stochastic neural networks, sec. 3. m are the
// expected weights of the deterministic (mean-field) run, f'_t is the derivative of its loss in the weights of choice t. Given
// z_<t the term of t has the mean f'_t . grad p_t, which is added back. Terms of earlier choices are constants; so are those of
// later choices, if choices are independent. u runs over all of these.
// Target: expected loss. Bias: none. Cost: K + 1 rows.
// Departures: where choices feed later ones, the terms of later choices are omitted, since their means depend on z_t. With
// reward_to_go, the expansion of choice t is that of the costs from t on, in choice t alone. No further baseline.
#include "core/estimator/score_function/score_function.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"

namespace hardgrad::estimators::muprop {
namespace {

template <class T>
class MuProp final : public Estimator<T> {
 public:
  MuProp(const Settings& settings, const Structure& structure, Key)
      : samples_(settings.integer("samples")), credit_(credit_of(settings)), independent_(structure.independent()) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ExpectedHandler<T> expected;
    Sampled<T> mean(problem, 1, expected), sampled(problem, samples_);
    problem.tape.backward(mean.path(), static_cast<T>(mean.rows()));  // gradient of the sum over examples: each has its own f'
    const auto choices = sampled.choices();
    const auto& z = choices.one_hot();
    const auto [slope, m] = expansion(problem.tape, mean, choices);
    const auto f = sampled.returns(credit_, choices.layout()), f_m = returns_at_mean(mean, choices.layout());

    const auto term = dot(slope, z - m);  // f'_u . (z_u - m_u)
    const auto taken =
        credit_ == Credit::reward_to_go ? sampled.sum_of_own_step(term) : sum(term, independent_ ? Along::all : Along::so_far);
    const auto g = (f - f_m - taken) * choices.score() + through_softmax(choices.p(), slope);

    Estimate<T> estimate{.surrogate = add(sampled.path(), choices.surrogate(g)), .loss = sampled.mean_loss()};
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
        const std::size_t c = step.choice + i, of_mean = i / step.columns / samples_ * step.columns + i % step.columns;
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
      const auto of_mean = mean.returns(static_cast<int>(t), credit_);  // [B], or by column [B, D]
      const std::size_t D = layout->steps[t].columns, columns = mean.columns(static_cast<int>(t), credit_);
      for (std::size_t i = 0; i < layout->samples * D; ++i)
        result.value[layout->steps[t].choice + i] = of_mean[i / D / samples_ * columns + (columns > 1 ? i % D : 0)];
    }
    return result;
  }
  int samples_;
  Credit credit_;
  bool independent_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "muprop",
    .summary = "score function with the Taylor expansion around the deterministic network as control variate",
    .paper = "Gu, Levine, Sutskever & Mnih 2016, MuProp: unbiased backpropagation for stochastic neural networks, sec. 3",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K + 1",
    .parameters = {samples_parameter(), credit_parameter()},
    .needs = {need::relaxable},
    .promises = {promise::noiseless(Promise::Loss::linear), promise::noiseless(Promise::Loss::linear, "reward_to_go=true"),
                 promise::unshifted(), promise::variance(2.156199495)},
};
HARDGRAD_ESTIMATOR(MuProp, entry)

}  // namespace hardgrad::estimators::muprop
