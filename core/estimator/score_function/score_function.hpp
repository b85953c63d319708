// Shared by score-function estimators: K sampled runs per example, returns in double, and surrogates.
//
// Rows of a sampled episode are (example b, sample k) in the order b K + k at every step, for sequential and factorised models.
// f - b is computed in double, because it cancels.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/choices.hpp"
#include "core/estimator/estimator.hpp"
#include "core/estimator/paths.hpp"

namespace hardgrad {

/// The costs that a choice is credited with.
enum class Credit {
  whole,        ///< the whole loss, less the target's divergences that are known before any choice
  reward_to_go  ///< only later costs (in factorised models: those of the same step)
};

/// How the path term of the surrogate weighs the costs.
enum class Costs {
  averaged,  ///< equally: `Sampled::path`
  weighted   ///< otherwise
};

/// A sampled run. Use `add` for costs other than the model's (entropies, divergences) before asking for returns.
template <class T>
class Sampled {
 public:
  /// Runs the problem's model with `samples` draws per example.
  Sampled(const Problem<T>& problem, int samples, Costs costs = Costs::averaged);
  /// The same with another handler whose rows are (b, k).
  Sampled(const Problem<T>& problem, int samples, Handler<T>& handler, Costs costs = Costs::averaged);

  Episode<T>& episode() { return *episode_; }
  std::unique_ptr<Episode<T>> release() { return std::move(episode_); }
  int samples() const { return samples_; }
  int steps() const { return static_cast<int>(episode_->steps().size()); }
  std::size_t rows() const { return static_cast<std::size_t>(samples_) * examples_; }

  /// Adds weight x value [R, 1] to the returns, as a cost on `rows`; `by_column` [R, D]: the same by column.
  void add(const RowsPtr& rows, Var<T> value, double weight = 1, Var<T> by_column = {});
  /// Columns of a step's returns: D if the columns have separate costs, else 1.
  int columns(int step, Credit credit) const;
  /// [B K], or [B K, D] by column: the returns of the choices of `step`.
  std::vector<double> returns(int step, Credit credit) const;
  /// The choices of the samples, and their logits.
  Choices<T> choices();
  /// The return of each choice.
  PerChoice returns(Credit credit, const std::shared_ptr<const ChoiceLayout>& layout) const;
  /// For each choice, the sum of x over the choices of its step that share its reward-to-go: all columns, or itself alone.
  PerChoice sum_of_own_step(const PerChoice& x) const;
  /// [1 or D] means of a step's returns over the rows with a choice there; NaN if there are none.
  std::vector<double> means_where_chosen(int step, const std::vector<double>& returns) const;
  /// [B K] the model's own losses.
  std::vector<double> losses() const;
  /// Their mean.
  double mean_loss() const;

  /// 1/(B K) sum_t sum_r signal[t][r] log p(choice t of row r): its gradient is the score-function term. Signals have the shape
  /// of returns: one per row, or one per row and column.
  Var<T> score(const std::vector<std::vector<double>>& signal);
  /// The same; make(t, f) turns the returns f of step t into its signal in place. `of`: whose p; by default, the distribution
  /// drawn from.
  template <class F>
  Var<T> score(Credit credit, F&& make) {
    return score(credit, std::forward<F>(make), episode_->terms().drawn_from);
  }
  template <class F>
  Var<T> score(Credit credit, F&& make, DrawnFrom of) {
    auto total = episode_->tape().constant(1, 1);
    std::vector<double> f, whole;
    for (int t = 0; t < steps(); ++t) {
      if (credit == Credit::reward_to_go)
        f = returns(t, credit);
      else
        f = t == 0 ? (whole = returns(t, credit)) : whole;  // the same at every step
      make(t, f);
      total = with_score(total, t, f, of);
    }
    return total;
  }
  /// 1/(B K) sum of the costs: its gradient is the path term.
  Var<T> path();
  /// The same with a weight for each sample [B K] instead of 1/(B K). Costs that precede all choices are averaged.
  Var<T> path(std::span<const double> weight);
  /// Mean over samples (and examples) of a value [R, 1] on `rows`.
  Var<T> mean(const RowsPtr& rows, Var<T> value);

 private:
  struct SignalTerm {
    RowsPtr rows;
    Var<T> value, by_column;
    double weight;
  };
  /// total + 1/(B K) sum_r signal[r] log p(choice `step` of row r). Overwrites `signal`.
  Var<T> with_score(Var<T> total, int step, std::vector<double>& signal, DrawnFrom of);
  int samples_;
  std::size_t examples_ = 0;
  std::unique_ptr<Episode<T>> episode_;
  Paths paths_;  // of the samples
  std::vector<SignalTerm> parts_;
  std::size_t own_ = 0;  // the first parts are the model's costs
};

/// The estimate 1/K sum_k [ A_k grad log p(z_k) + grad f_k ]. advantage(f, columns) turns the returns f of a step, [B K] or by
/// column, into A in place.
template <class T, class F>
Estimate<T> score_estimate(Sampled<T> sampled, Credit credit, F&& advantage) {
  const auto score = sampled.score(credit, [&](int t, std::vector<double>& f) { advantage(f, sampled.columns(t, credit)); });
  auto surrogate = add(score, sampled.path());
  return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
}

/// The same with A_k = f_k - baseline.
template <class T>
Estimate<T> with_constant_baseline(Sampled<T> sampled, double baseline, Credit credit);

/// The estimate 1/K sum_k grad f_k through the handler's answers, which are differentiable.
template <class T>
Estimate<T> path_estimate(const Problem<T>& problem, int samples, Handler<T>& handler);

/// Settings that most score-function estimators share.
void samples_field(Fields& field, int& samples, int low = 1);
void credit_field(Fields& field, Credit& credit);
void baseline_field(Fields& field, double& baseline);
template <int fallback = 1, int least = 1>
struct SamplesConfig {
  int samples = fallback;
  void declare(Fields& field) { samples_field(field, samples, least); }
};
/// With the costs that a choice is credited with.
template <int fallback = 1, int least = 1>
struct SamplesAndCredit {
  int samples = fallback;
  Credit credit = Credit::whole;
  void declare(Fields& field) {
    samples_field(field, samples, least);
    credit_field(field, credit);
  }
};
/// With a constant baseline.
template <int fallback = 1>
struct BaselineConfig {
  int samples = fallback;
  double baseline = 0;
  Credit credit = Credit::whole;
  void declare(Fields& field) {
    samples_field(field, samples);
    baseline_field(field, baseline);
    credit_field(field, credit);
  }
};

// With a reference run as baseline: a run of the same network without sampling.

/// The returns f [B K D] less the returns of the reference run [B D], which has one row per example.
inline void subtract_baseline(std::vector<double>& f, const std::vector<double>& baseline, std::size_t columns) {
  const std::size_t samples = f.size() / baseline.size();
  for (std::size_t i = 0; i < f.size(); ++i) f[i] -= baseline[i / columns / samples * columns + i % columns];
}

/// 1/K sum_k [ (f_k - f(reference)) grad log p(z_k) + grad f_k ]. A handler without noise answers the reference run. The
/// reference does not depend on the samples, so the estimate is unbiased. With reward_to_go, the baseline of each choice is the
/// reference's cost from that choice on.
template <class T>
Estimate<T> score_against(const Problem<T>& problem, int samples, Credit credit, Handler<T>& reference);

}  // namespace hardgrad
