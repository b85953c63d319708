#include "core/estimator/enumeration/outcome_objectives.hpp"

#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/support/log_gamma.hpp"

namespace hardgrad {
namespace {

/// Visits the multisets of K outcomes and sums the bound and its slopes.
class Multisets {
 public:
  Multisets(std::span<const Outcome> outcomes, int samples)
      : outcomes_(outcomes), samples_(samples), count_(outcomes.size()), result_{0, Slopes(outcomes.size())} {
    visit(0, samples, log_gamma(samples + 1.0));
  }
  OutcomeObjective result() && {
    // sum_z q(z) grad log q(z) = 0, so subtracting the bound leaves the gradient unchanged and avoids cancellation.
    for (std::size_t i = 0; i < count_.size(); ++i)
      result_.slopes.log_q[i] -= samples_ * std::exp(outcomes_[i].log_q) * result_.value;
    return std::move(result_);
  }

 private:
  /// Distributes the `left` remaining samples over outcomes from `i` on; `log_p`: log probability of the multiset so far.
  void visit(std::size_t i, int left, double log_p) {
    if (left == 0) return finish(std::exp(log_p));
    if (i == outcomes_.size()) return;
    for (int n = i + 1 == outcomes_.size() ? left : 0; n <= left; ++n) {
      if (n > 0) chosen_.push_back(static_cast<int>(i));
      count_[i] = n;
      visit(i + 1, left - n, log_p + n * outcomes_[i].log_q - log_gamma(n + 1.0));
      if (n > 0) chosen_.pop_back();
    }
    count_[i] = 0;
  }
  // L = -log(1/K sum_i n_i w_i), so dL / dlog w_i = -n_i w_i / sum_j n_j w_j. The probability p of the multiset adds n_i L to
  // the slope in log q_i.
  void finish(double p) {
    std::vector<double> log_weight;
    for (int i : chosen_) log_weight.push_back(std::log(count_[i]) + outcomes_[i].log_weight());
    const double whole = log_sum_exp(log_weight), bound = std::log(samples_) - whole;
    result_.value += p * bound;
    for (std::size_t c = 0; c < chosen_.size(); ++c) {
      const int i = chosen_[c];
      const double share = p * std::exp(log_weight[c] - whole);
      result_.slopes.add_log_joint(i, -share);
      result_.slopes.log_q[i] += share + p * count_[i] * bound;
    }
  }

  std::span<const Outcome> outcomes_;
  int samples_;
  std::vector<int> count_, chosen_;
  OutcomeObjective result_;
};

std::vector<double> each(std::span<const Outcome> outcomes, double (*f)(const Outcome&)) {
  std::vector<double> values;
  for (const auto& z : outcomes) values.push_back(f(z));
  return values;
}

}  // namespace

OutcomeObjective importance_bound(std::span<const Outcome> outcomes, int samples) {
  return Multisets(outcomes, samples).result();
}

OutcomeObjective wake_field(std::span<const Outcome> outcomes, bool posterior_too) {
  const auto log_joint = each(outcomes, [](const Outcome& z) { return z.log_p - z.loss; });
  const auto posterior = self_normalised(log_joint);
  OutcomeObjective result{-log_sum_exp(log_joint), Slopes(outcomes.size())};
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    result.slopes.add_log_joint(i, -posterior[i]);
    if (posterior_too) result.slopes.log_q[i] = -posterior[i];
  }
  return result;
}

OutcomeObjective sleep_field(std::span<const Outcome> outcomes) {
  OutcomeObjective result{0, Slopes(outcomes.size())};
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const double joint = std::exp(outcomes[i].log_p - outcomes[i].loss);
    result.value -= joint * outcomes[i].log_q;
    result.slopes.log_q[i] = -joint;
  }
  return result;
}

// d E_pi[l] = E_pi[dl] + Cov_pi(l, dlog pi~) with l = log w and log pi~ = b log joint + (1 - b) log q.
OutcomeObjective thermodynamic_objective(std::span<const Outcome> outcomes, std::span<const double> partition) {
  const auto log_w = each(outcomes, [](const Outcome& z) { return z.log_weight(); });
  OutcomeObjective result{0, Slopes(outcomes.size())};
  for (std::size_t j = 0; j + 1 < partition.size(); ++j) {
    const double b = partition[j], width = partition[j + 1] - b;
    std::vector<double> log_pi;
    for (std::size_t i = 0; i < log_w.size(); ++i) log_pi.push_back(outcomes[i].log_q + b * log_w[i]);
    const auto pi = self_normalised(log_pi);
    double mean = 0;
    for (std::size_t i = 0; i < pi.size(); ++i) mean += pi[i] * log_w[i];
    result.value -= width * mean;
    for (std::size_t i = 0; i < pi.size(); ++i) {
      result.slopes.add_log_joint(i, -width * pi[i] * (1 + b * (log_w[i] - mean)));
      result.slopes.log_q[i] -= width * pi[i] * ((1 - b) * (log_w[i] - mean) - 1);
    }
  }
  return result;
}

template <class T>
Estimate<T> enumerated_outcomes(const Problem<T>& problem, bool by_parts,
                                const std::function<OutcomeObjective(std::span<const Outcome>)>& objective) {
  EnumerateHandler<T> handler(problem.model.structure());
  auto episode = problem.run(handler);
  const auto& batch = problem.batch;
  auto surrogate = problem.tape.constant(1, 1);
  double value = 0;
  const auto include = [&](const Outcomes<T>& outcomes) {
    std::vector<Slopes> slopes;
    for (int b = 0; b < batch.examples(); ++b) {
      auto one = objective(outcomes.of(b));
      value += one.value / batch.examples();
      slopes.push_back(std::move(one.slopes));
    }
    surrogate = add(surrogate, outcomes.surrogate(slopes));
  };
  if (by_parts)
    for (const auto& part : Outcomes<T>::parts(*episode)) include(part);
  else
    include(Outcomes<T>(*episode));
  return {.surrogate = surrogate, .episode = std::move(episode), .loss = value};
}

#define HARDGRAD_INSTANTIATE(T)                                     \
  template Estimate<T> enumerated_outcomes(const Problem<T>&, bool, \
                                           const std::function<OutcomeObjective(std::span<const Outcome>)>&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
