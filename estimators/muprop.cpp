// muprop: the score function with the loss's first-order Taylor expansion around the deterministic network taken off.
//
//   g = 1/K sum_k sum_t [ (f(z) - f(m) - sum_u f'_u . (z_u - m_u)) grad log p(z_t | z_<t) + f'_t . grad p_t(z_<t) ] + grad f(z)
//
// Gu, Levine, Sutskever & Mnih 2016, MuProp: unbiased backpropagation for stochastic neural networks, sec. 3. m are the
// expected weights of the deterministic (mean-field) run, f'_t the derivative of its loss in the weights of choice t.
// Given z_<t the term of t has the mean f'_t . grad p_t, which is added back; terms of earlier choices are constants, and
// where choices are independent so are those of later ones. u runs over these.
// Target: expected loss. Bias: none. Cost: K + 1 rows.
// Departures: where choices feed later ones the terms of later choices are left out, since their means depend on z_t. With
// reward_to_go the expansion is that of the costs from t on, in choice t alone. No further baseline.
#include "core/estimator/score_function/score_function.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/choosers.hpp"

namespace hardgrad {
namespace {

template <class T>
class MuProp final : public Estimator<T> {
 public:
  MuProp(const Settings& settings, const Structure& structure, Key)
      : samples_(settings.integer("samples")), credit_(credit_of(settings)), independent_(structure.independent()) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ExpectedChooser<T> expected;
    Sampled<T> mean(problem, 1, expected), sampled(problem, samples_);
    problem.tape.backward(mean.path(), static_cast<T>(mean.rows()));  // of the sum over examples: each has its own f'
    const auto slopes = slopes_of(problem.tape, mean);

    auto surrogate = sampled.path();
    std::vector<std::vector<double>> signal, term;
    for (int t = 0; t < sampled.steps(); ++t) {
      const auto& [question, choice] = sampled.episode().steps()[t];
      const auto m = mean.episode().steps()[t].choice.weights.value();
      const auto at_mean = mean.returns(t, credit_);
      signal.push_back(sampled.returns(t, credit_));
      term.emplace_back(sampled.rows());
      const std::size_t D = question.site.columns, of_row = D * m.cols;
      for (std::size_t r = 0; r < sampled.rows(); ++r) {
        const int b = choice.rows->example[r];
        for (std::size_t d = 0; d < D; ++d) {
          const double* slope = slopes[t].data() + (b * D + d) * m.cols;
          term[t][r] += slope[choice.option[r * D + d]];
          for (std::size_t i = 0; i < m.cols; ++i) term[t][r] -= slope[i] * static_cast<double>(m(b * D + d, i));
        }
        signal[t][r] -= at_mean[b];
      }
      // f'_t . p_t(z_<t), with the weight of the asking rows' mean
      const auto& asking = *question.site.rows;
      std::vector<double> weight(asking.size() * of_row);
      for (std::size_t i = 0; i < weight.size(); ++i)
        weight[i] = slopes[t][asking.example[i / of_row] * of_row + i % of_row] / static_cast<double>(asking.size());
      surrogate = add(surrogate, weighted_sum(probabilities(question.log_p), std::span<const double>(weight)));
    }
    for (int t = 0; t < sampled.steps(); ++t)
      for (int u = 0; u < sampled.steps(); ++u)
        if (u == t || (credit_ == Credit::whole && (u < t || independent_)))
          for (std::size_t r = 0; r < sampled.rows(); ++r) signal[t][r] -= term[u][r];
    surrogate = add(surrogate, sampled.score(signal));
    const double loss = sampled.mean_loss();
    Estimate<T> estimate{.surrogate = surrogate, .episode = sampled.release(), .loss = loss};
    estimate.others.push_back(mean.release());
    return estimate;
  }

 private:
  /// Per step [B D, S]: the derivative of the mean-field loss in the weights, which the next backward pass overwrites.
  static std::vector<std::vector<double>> slopes_of(Tape<T>& tape, Sampled<T>& mean) {
    std::vector<std::vector<double>> slopes;
    for (const auto& step : mean.episode().steps()) {
      const auto slope = tape.gradient(step.choice.weights);
      slopes.emplace_back(slope.data, slope.data + slope.size());
    }
    return slopes;
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
};
HARDGRAD_ESTIMATOR(MuProp, entry)

}  // namespace hardgrad
