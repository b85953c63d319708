// gumbel_top_k: subsets relaxed to k successive softmaxes of perturbed logits; the relaxed loss is differentiated.
//
//   r = x + Gumbel,   a_1 = r,   p_j = softmax(a_j / temperature),   a_{j+1} = a_j + log(1 - p_j),   w = sum_{j <= k} p_j
//   g = 1/K sum_k grad f(w_k);   with hard=true: f at the k largest r, the derivative that of w
//
// Xie & Ermon 2019, Reparameterizable subset sampling via continuous relaxations, algorithm 1 (here with a_{j+1} as in their
// eq. 5). For one of n options it is gumbel_softmax, and with hard=true st_gumbel.
// Target: expected loss. Bias: yes; in the limit of low temperatures none if the network's subsets are Plackett-Luce: the k largest
// r are k draws without replacement. With the conditional Poisson distribution it stays, unless k is 1. Cost: K rows.
#include <algorithm>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/relaxed.hpp"
#include "core/choice/top_k.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

namespace hardgrad::estimators::gumbel_top_k {
namespace {

struct Config {
  int samples = 1;
  double temperature = 0.5;
  bool hard = false;

  void declare(Fields& field) {
    samples_field(field, samples);
    temperature_field(field, temperature);
    field(hard, "hard", "the loss at the k largest perturbed logits (straight-through)");
  }
};

template <class T>
class GumbelTopKHandler final : public Handler<T> {
 public:
  GumbelTopKHandler(int samples, Randomness& random, const std::vector<std::uint32_t>& id, double temperature, bool hard)
      : samples_(samples), random_(random), id_(id), temperature_(temperature), hard_(hard) {}

  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto rows = fan_out(question, question.site.rows->is_root() ? samples_ : 1);
    const auto options = options_of(question, *rows), subset_size = subset_size_of(question, *rows);
    const int most = question.distribution->subset_size();
    const auto r = perturbed_logits(tape, question, *rows, random_, id_);
    const auto soft = relaxed(tape, r, options, subset_size, most);
    if (!hard_) return {rows, Relaxed<T>{{}, soft, most}};
    return {rows, straight_through(tape, {rows, largest(r, options, subset_size, most)}, soft)};
  }

 private:
  /// w [C, S]; 1 for all options where they are not more than the picks [C]. 1 - p_i is summed from the others, so that it does
  /// not cancel where option i is nearly certain.
  Var<T> relaxed(Tape<T>& tape, Var<T> r, const std::vector<int>& options, const std::vector<int>& subset_size,
                 int most) const {
    constexpr T tiny = static_cast<T>(1e-30);
    const std::size_t S = r.cols();
    Var<T> sum;
    for (int j = 0; j < most; ++j) {
      const auto p = probabilities(log_softmax(affine(r, static_cast<T>(1 / temperature_)), std::span<const int>(options)));
      sum = sum ? add(sum, of_more_picks(tape, p, subset_size, j)) : p;
      if (j + 1 < most) r = add(r, log(affine(sums_of_others(p), T{1}, tiny)));
    }
    const auto chooses = tape.constant(options.size(), 1), all = tape.constant(options.size(), S);
    for (std::size_t c = 0; c < options.size(); ++c) {
      tape.mutable_value(chooses).data[c] = options[c] > subset_size[c];
      if (options[c] <= subset_size[c]) std::fill_n(tape.mutable_value(all).row(c), options[c], T{1});
    }
    return add(scale_rows(sum, chooses), all);
  }
  /// p [C, S], 0 of choices with no more than j picks.
  static Var<T> of_more_picks(Tape<T>& tape, Var<T> p, const std::vector<int>& subset_size, int j) {
    if (std::all_of(subset_size.begin(), subset_size.end(), [&](int k) { return k > j; })) return p;
    const auto more = tape.constant(subset_size.size(), 1);
    for (std::size_t c = 0; c < subset_size.size(); ++c) tape.mutable_value(more).data[c] = subset_size[c] > j;
    return scale_rows(p, more);
  }

  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  double temperature_;
  bool hard_;
};

template <class T>
class GumbelTopK final : public Estimator<T> {
 public:
  GumbelTopK(const Config& config, const Structure&, Key) : config_(config) {}
  int copies() const override { return config_.samples; }
  bool exchangeable() const override { return false; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const int samples = problem.one_copy ? 1 : config_.samples;
    GumbelTopKHandler<T> handler(samples, problem.random, problem.batch.id, config_.temperature, config_.hard);
    return path_estimate(problem, samples, handler);
  }

 private:
  Config config_;
};

SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  return relaxed_mean(config.temperature, at, config.hard);
}

}  // namespace

const EstimatorEntry entry = {
    .name = "gumbel_top_k",
    .summary = "subsets relaxed to k successive softmaxes of Gumbel-perturbed logits",
    .paper = "Xie & Ermon 2019, Reparameterizable subset sampling via continuous relaxations",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::picks},
    .promises = {promise::mean(expected), promise::mean(expected, "temperature=1.3"),
                 promise::mean(expected, "hard=true,temperature=0.8")},
    .infinite_variance = [](const Config& config, const Structure& structure,
                            double) { return config.hard ? "" : no_variance_of_slopes(structure); },
    .closed_form = [](const Config& config) { return config.hard ? ClosedForm::none : ClosedForm::gumbel_softmax; },
};
HARDGRAD_ESTIMATOR(GumbelTopK, entry)

}  // namespace hardgrad::estimators::gumbel_top_k
