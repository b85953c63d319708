// dense_mixer: the most probable options in the forward pass; the router's derivative as if all options answered.
//
//   o = sum_(i in S) p_i E_i,   S = the k largest of p;   do/dlogits := sum_i dp_i/dlogits E_i, over all options i
//
// Written for networks that weigh the answer E_i of an option with its probability p_i themselves (router[gate=probability]): the
// derivative of their weights z is 0 for the chosen options and d log p_i for the others, g = grad f(z) with this derivative.
// Without it (path_only[hard_threshold=true]), the logits of options that are not chosen learn from the normalisation alone.
//
// DenseMixer: Yao et al. 2025, Improving MoE post-training with precise router gradient, as in their code with
// norm_topk_prob=false: answers that are not chosen have no gradient themselves.
// Target: expected loss. Bias: yes; for other networks it depends on f beyond weights that sum to 1. Cost: 1 row.
// Departures: options are not normalised over the chosen ones. Of subsets p_i is the probability that i is picked.
#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/choice/handlers.hpp"
#include "core/choice/relaxed.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::dense_mixer {
namespace {

template <class T>
class DenseHandler final : public Handler<T> {
 public:
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto hard = most_probable_.choose(tape, question);
    const auto p = question.distribution->mean(hard.rows).weights();
    const auto over_p = tape.constant(p.rows(), p.cols());  // 0 for the chosen, where the network has the derivative itself
    const auto value = p.value();
    const auto to = tape.mutable_value(over_p);
    for (std::size_t i = 0; i < value.size(); ++i)
      if (const T inverse = 1 / value.data[i]; std::isfinite(inverse)) to.data[i] = inverse;
    const std::size_t k = hard.subset_size();
    for (std::size_t i = 0; i < hard.picked().size(); ++i)
      if (const int chosen = hard.picked()[i]; chosen >= 0) to(i / k, static_cast<std::size_t>(chosen)) = 0;
    return {hard.rows, straight_through(tape, hard, multiply(over_p, p))};
  }

 private:
  GreedyHandler<T> most_probable_;
};

template <class T>
class DenseMixer final : public Estimator<T> {
 public:
  DenseMixer(const Settings&, const Structure&, Key) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    DenseHandler<T> handler;
    return path_estimate(problem, 1, handler);
  }
};

// sum over the options i but the most probable one z: f'(z)_i (e_i - p)
SmallChoice::Vector expected(const Settings&, const SmallChoice& at) {
  const auto p = at.p();
  const auto z = static_cast<std::size_t>(std::max_element(std::begin(p), std::end(p)) - std::begin(p));
  const auto slope = at.slope(at.one_hot(z));
  SmallChoice::Vector g(0.0, p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    if (i != z) g += slope[i] * (at.one_hot(i) - p);
  return g;
}

}  // namespace

const EstimatorEntry entry = {
    .name = "dense_mixer",
    .summary = "the most probable options, with the derivative of a router as if all options answered",
    .paper = "Yao et al. 2025, DenseMixer: improving MoE post-training with precise router gradient",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "1",
    .needs = {need::picks},
    .promises = {promise::mean(expected)},
};
HARDGRAD_ESTIMATOR(DenseMixer, entry)

}  // namespace hardgrad::estimators::dense_mixer
