// rodeo: leave-one-out with control variates that a discrete Stein operator makes of a learned surrogate of f.
//
//   g = 1/K sum_k [ (f_k - 1/(K-1) sum_{j != k} (f_j + alpha (A h_j)(z_j))) grad log p(z_k) + beta (A h'_k grad log p)(z_k) ]
//       + 1/K sum_k grad f_k
//   (A h)(z) = 1/T sum_t [ sum_y p(z_t := y | rest) h(z with z_t := y) - h(z) ]
//   h_k(z), h'_k(z) = H(1/(K-1) sum_{j != k} f_j, 1/(K-1) sum_{j != k} df_j/dz_j . (z - z_j))
//
// Shi, Zhou, Hwang, Titsias & Mackey 2022, Gradient estimation with discrete Stein operators: RODEO, with the Gibbs
// Stein operator (which for bits is Barker's too). H is a network with one layer; it, alpha and beta descend |g|^2.
// A h has the mean 0 under p, whatever the others' samples. Where choices feed later ones, p(z_t | rest) is the
// probability given what came before alone, and h looks at no choice after t: A h is then a sum of martingale differences,
// and the mean is 0 still.
// Target: expected loss. Bias: none. Cost: K rows, one backward pass more, and T S evaluations of H a sample.
// Departures: as said for dependent choices; categories besides bits; tanh units; |g|^2 is taken at the logits, row by row.
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/relaxation/sloped_samples.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {
namespace {

template <class T>
class Rodeo final : public Estimator<T> {
 public:
  Rodeo(const Settings& settings, const Structure& structure, Key init)
      : samples_(settings.integer("samples")),
        independent_(structure.independent()),
        alpha_(this->own_.add("rodeo.alpha", {1})),
        beta_(this->own_.add("rodeo.beta", {1})) {
    alpha_.value.data[0] = static_cast<T>(settings.real("alpha"));
    beta_.value.data[0] = static_cast<T>(settings.real("beta"));
    const auto width = static_cast<std::size_t>(settings.integer("hidden"));
    hidden_ = Linear<T>(this->own_, "surrogate.hidden", 2, width, init);
    out_ = Linear<T>(this->own_, "surrogate.out", width, 2, init);
  }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    SlopedSamples<T> samples(problem, samples_);
    const auto choices = choices_of(samples);
    const auto h = surrogates(problem.tape, choices);  // [neighbours, 2]: h, h'
    const auto value = h.value();
    const double alpha = alpha_.value.data[0], beta = beta_.value.data[0];

    // Stein operator of both, choice by choice: sum_y (p(y) - [y = z_t]) h(y) / T.
    std::vector<double> stein(samples.rows());   // (A h_k)(z_k)
    std::vector<double> second(samples.rows());  // (A h'_k)(z_k)
    for (const auto& c : choices)
      for (std::size_t y = 0; y < c.weight.size(); ++y) {
        stein[c.row] += c.weight[y] * static_cast<double>(value(c.first + y, 0));
        second[c.row] += c.weight[y] * static_cast<double>(value(c.first + y, 1));
      }
    auto signal = samples.run().losses();
    leave_one_out(signal, samples_);
    const auto others = mean_of_others(stein);

    auto plain = samples.at_logits(), in_alpha = samples.at_logits(), in_beta = samples.at_logits();
    for (const auto& c : choices) {
      const auto p = samples.p(c.step, c.row);
      const auto s = score(samples.option(c.step, c.row), p);
      samples.add(plain, c.step, c.row, signal[c.row], s);
      samples.add(in_alpha, c.step, c.row, -others[c.row], s);
      samples.add(in_beta, c.step, c.row, second[c.row], s);
      // The operator changes this choice's own score too: score(y) - score(z_t) = one_hot(y) - one_hot(z_t).
      for (std::size_t y = 0; y < c.weight.size(); ++y) {
        auto moved = score(static_cast<int>(y), p);
        for (std::size_t i = 0; i < s.size(); ++i) moved[i] -= s[i];
        samples.add(in_beta, c.step, c.row, c.weight[y] * static_cast<double>(value(c.first + y, 1)), moved);
      }
    }
    auto g = plain;
    for (std::size_t t = 0; t < g.size(); ++t)
      for (std::size_t i = 0; i < g[t].size(); ++i) g[t][i] += alpha * in_alpha[t][i] + beta * in_beta[t][i];

    auto surrogate = samples.surrogate(g);
    const double loss = samples.run().mean_loss();
    Estimate<T> estimate{.surrogate = surrogate, .episode = nullptr, .loss = loss};
    if (problem.learning) {
      auto& tape = problem.tape;
      estimate.own_loss = add(add(sum(tape.parameter(alpha_), 2 * samples.product(g, in_alpha)),
                                  sum(tape.parameter(beta_), 2 * samples.product(g, in_beta))),
                              surrogate_loss(samples, choices, g, h));
    }
    estimate.episode = samples.run().release();
    return estimate;
  }

 private:
  /// One choice of one sample, with its neighbours: the sample with this choice replaced by each option.
  struct Made {
    int step;
    std::size_t row, first;      ///< `first`: of its neighbours among all
    std::vector<double> weight;  ///< [options] (p(y) - [y = z_t]) / T
    std::vector<double> linear;  ///< [options] df/dz . (z - z_j), mean over the others
    double level;                ///< mean loss of the others
  };

  std::vector<double> mean_of_others(const std::vector<double>& x) const {
    std::vector<double> mean(x.size());
    for (std::size_t r = 0; r < x.size(); ++r) {
      const std::size_t from = r / samples_ * samples_;
      for (std::size_t j = from; j < from + samples_; ++j)
        if (j != r) mean[r] += x[j] / (samples_ - 1);
    }
    return mean;
  }

  std::vector<Made> choices_of(SlopedSamples<T>& samples) const {
    const auto level = mean_of_others(samples.run().losses());
    std::vector<Made> made;
    std::size_t neighbours = 0;
    for (std::size_t r = 0; r < samples.rows(); ++r) {
      const std::size_t begin = made.size();
      double before = 0;  // df/dz . (z - z_j) of the choices up to here
      for (int t = 0; t < samples.steps(); ++t) {
        const int options = samples.options(t, r), chosen = samples.option(t, r);
        if (options == 1) continue;
        auto slope = samples.others_slope(t, r);
        double center = 0;
        const std::size_t from = r / samples_ * samples_;
        for (std::size_t j = from; j < from + samples_; ++j)
          if (j != r) center += samples.slope(t, j)[samples.option(t, j)] / (samples_ - 1);
        Made choice{t, r, neighbours, std::vector<double>(options), std::vector<double>(options), level[r]};
        for (int y = 0; y < options; ++y) {
          choice.weight[y] = samples.p(t, r)[y] - (y == chosen);
          choice.linear[y] = before + slope[y] - center;
        }
        before = choice.linear[chosen];
        neighbours += options;
        made.push_back(std::move(choice));
      }
      for (std::size_t i = begin; i < made.size(); ++i) {
        const double own = made[i].linear[samples.option(made[i].step, r)];
        for (auto& weight : made[i].weight) weight /= static_cast<double>(made.size() - begin);
        for (auto& linear : made[i].linear)
          if (independent_) linear += before - own;  // the later choices' part
      }
    }
    return made;
  }

  Var<T> surrogates(Tape<T>& tape, const std::vector<Made>& choices) const {
    const std::size_t neighbours = choices.empty() ? 0 : choices.back().first + choices.back().linear.size();
    auto input = tape.constant(neighbours, 2);
    auto to = tape.mutable_value(input);
    for (const auto& c : choices)
      for (std::size_t y = 0; y < c.linear.size(); ++y) {
        to(c.first + y, 0) = static_cast<T>(c.linear[y]);
        to(c.first + y, 1) = static_cast<T>(c.level);
      }
    return out_(tanh(hidden_(input)));
  }

  /// Its gradient is that of |g|^2 in H's parameters: g is linear in all h and h'.
  Var<T> surrogate_loss(const SlopedSamples<T>& samples, const std::vector<Made>& choices, const AtLogits& g, Var<T> h) const {
    const double alpha = alpha_.value.data[0], beta = beta_.value.data[0];
    const double scale = 2 / (static_cast<double>(samples.rows()) * samples_);
    std::vector<double> along(samples.rows());  // <g, grad log p(z_k)>
    for (const auto& c : choices) along[c.row] += samples.product_at(g, c.step, c.row, samples.option(c.step, c.row));
    const auto others = mean_of_others(along);  // A h_j enters as the mean over the others of each k: the same sum
    std::vector<double> weight(h.rows() * 2);
    for (const auto& c : choices)
      for (std::size_t y = 0; y < c.weight.size(); ++y) {
        const double replaced = along[c.row] - samples.product_at(g, c.step, c.row, samples.option(c.step, c.row)) +
                                samples.product_at(g, c.step, c.row, static_cast<int>(y));
        weight[2 * (c.first + y)] = -scale * alpha * others[c.row] * c.weight[y];
        weight[2 * (c.first + y) + 1] = scale * beta * replaced * c.weight[y];
      }
    return weighted_sum(h, std::span<const double>(weight));
  }

  int samples_;
  bool independent_;
  Parameter<T>&alpha_, &beta_;
  Linear<T> hidden_, out_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "rodeo",
    .summary = "leave-one-out with Stein control variates of a learned surrogate of the loss",
    .paper = "Shi, Zhou, Hwang, Titsias & Mackey 2022, Gradient estimation with discrete Stein operators",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = {samples_parameter(4, 2),
                   ParameterInfo::real("alpha", 0, -1e6, 1e6, "weight of the control variate on the baseline, at first"),
                   ParameterInfo::real("beta", 0, -1e6, 1e6, "weight of the control variate on the gradient, at first"),
                   ParameterInfo::integer("hidden", 100, 1, 65536, "units of the surrogate network")},
    .needs = {need::relaxable, need::one_column},
};
HARDGRAD_ESTIMATOR(Rodeo, entry)

}  // namespace hardgrad
