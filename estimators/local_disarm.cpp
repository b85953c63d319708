// local_disarm: the K-sample bound, with one sample at a time replaced by its antithetic twin.
//
//   L(w_1..w_K) = -log 1/K sum_k w_k,  w = p(z) exp(-f) / q(z),  (b_k, b~_k) antithetic pairs from q with weights w_k, w~_k
//   g_phi = sum_k 1/2 [ D_k + D~_k ] / 2 (b_k - b~_k) sig(|phi|)            at the logit phi of every choice of q
//   D_k = L(.., w_k, ..) - L(.., w~_k, ..) with the other weights from w,   D~_k the same with those from w~
//   and 1/2 sum_k (v_k grad (-log w_k) + v~_k grad (-log w~_k)),   v = w / sum w
//
// Dong, Mnih & Tucker 2020, DisARM: an antithetic gradient estimator for binary latent variables (local DisARM): DisARM on the
// bound as a function of one sample, the others held fixed. The mean over both halves needs no further rows.
// Target: the K-sample bound. Bias: none. Cost: 2 K rows, K pairs. For K = 1 it is disarm[target=elbo,kl=sampled].
// Departure: the last line, the remaining gradient of q and of the network, also averages both halves.
#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/coupling/antithetic_bits.hpp"
#include "core/estimator/importance/importance.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::local_disarm {
namespace {

struct Config {
  int samples = 2;

  void declare(Fields& field) { field(samples, "samples", 1, 1e6, "samples of the bound; each has a twin"); }
};

/// Rows 2 k and 2 k + 1 of an example are an antithetic pair.
template <class T>
class PairHandler final : public Handler<T> {
 public:
  PairHandler(const Problem<T>& problem, int pairs) : problem_(problem), pairs_(pairs) {}
  Choice<T> choose(Tape<T>&, const Question<T>& question) override {
    const auto rows = fan_out(question, question.site.rows->is_root() ? 2 * pairs_ : 1);
    std::vector<int> parent, option;
    for (std::size_t r = 0; r < rows->size(); r += 2) parent.push_back(rows->parent[r]);
    const auto firsts = Rows::after(question.site.rows, std::move(parent), question.step);
    const auto drawn = draw_pairs(question, *firsts, problem_.random, problem_.batch.id);
    const auto D = static_cast<std::ptrdiff_t>(question.site.columns);
    for (std::ptrdiff_t n = 0; n < std::ssize(firsts->example); ++n)
      for (const auto* member : {&drawn.first, &drawn.second})
        option.insert(option.end(), member->begin() + n * D, member->begin() + (n + 1) * D);
    return {rows, ChosenOptions{std::move(option)}};
  }

 private:
  const Problem<T>& problem_;
  int pairs_;
};

template <class T>
class LocalDisArm final : public Estimator<T> {
 public:
  LocalDisArm(const Config& config, const Structure&, Key) : config_(config) {}
  bool exchangeable() const override { return false; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    PairHandler<T> handler(problem, config_.samples);
    ImportanceSamples<T> drawn(problem, 2 * config_.samples, handler);
    auto choices = drawn.choices();
    std::vector<double> difference;  // (D_k + D~_k) / 2 of each pair
    auto estimate = drawn.estimate([&](int b, Slopes& slope) {
      double bound = 0;
      std::vector<double> swapped(config_.samples);
      for (int half : {0, 1}) {
        std::vector<double> log_w(config_.samples);
        for (int k = 0; k < config_.samples; ++k) log_w[k] = drawn.log_weights(b)[2 * k + half];
        const double own = -log_mean_exp(log_w);
        const auto v = self_normalised(log_w);
        bound += own / 2;
        for (int k = 0; k < config_.samples; ++k) {
          slope.add_log_joint(2 * k + half, -v[k] / 2);
          slope.log_q[2 * k + half] = v[k] / 2;
          auto exchanged = log_w;
          exchanged[k] = drawn.log_weights(b)[2 * k + 1 - half];
          swapped[k] += (half == 0 ? 1 : -1) * (own + log_mean_exp(exchanged)) / 2;
        }
      }
      difference.insert(difference.end(), swapped.begin(), swapped.end());
      return bound;
    });
    estimate.surrogate = add(estimate.surrogate, choices.surrogate(at_logits(choices, difference)));
    return estimate;
  }

 private:
  /// g at the logits of the first members; scaled so that the mean over 2 K rows gives the sum over the pairs.
  AtLogits at_logits(const Choices<T>& choices, const std::vector<double>& difference) const {
    auto g = choices.zeros();
    const auto& layout = *choices.layout();
    const auto &p = choices.p().value, &z = choices.one_hot().value;
    for (const auto& step : layout.steps)
      for (std::size_t pair = 0; pair < difference.size(); ++pair)
        for (std::size_t d = 0; d < step.columns; ++d) {
          const std::size_t choice = step.choice + 2 * pair * step.columns + d;
          if (layout.options[choice] == 1) continue;
          const std::size_t first = layout.logit[choice], antithetic = layout.logit[choice + step.columns];
          const double larger = std::max(p[first], p[first + 1]);  // sig(|phi|)
          g.value[first + 1] = 2 * config_.samples * difference[pair] * (z[first + 1] - z[antithetic + 1]) * larger / 2;
          g.value[first] = -g.value[first + 1];
        }
    return g;
  }
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "local_disarm",
    .summary = "K-sample importance-weighted bound of bits, one sample at a time replaced by its antithetic twin",
    .paper = "Dong, Mnih & Tucker 2020, DisARM (local DisARM, for multi-sample bounds)",
    .target = "importance_bound",
    .target_of = samples_of_bound,
    .unbiased = true,
    .evaluations = "2 K",
    .parameters = declared<Config>(),
    .needs = {need::bits},
    .promises = {promise::same_moments("disarm[target=elbo,kl=sampled]", "samples=1")},
    .why_unsupported = [](const Config&, const Structure& structure) -> std::string {
      return structure.independent() ? "" : "its pairs run side by side, but here choices feed later ones: take vimco";
    },
};
HARDGRAD_ESTIMATOR(LocalDisArm, entry)

}  // namespace hardgrad::estimators::local_disarm
