#include "core/estimator/score_function/score_function.hpp"

#include <algorithm>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/choosers.hpp"

namespace hardgrad {

template <class T>
Sampled<T>::Sampled(const Problem<T>& problem, int samples, Costs costs) : samples_(samples) {
  SampleChooser<T> chooser(samples, problem.random, problem.batch.id);
  *this = Sampled(problem, samples, chooser, costs);
}

template <class T>
Sampled<T>::Sampled(const Problem<T>& problem, int samples, Chooser<T>& chooser, Costs costs)
    : samples_(samples),
      examples_(problem.batch.examples()),
      episode_(problem.run(chooser, costs == Costs::averaged ? CostWeights::equal : CostWeights::unknown)) {
  parts_.reserve(episode_->costs().size());
  for (const auto& cost : episode_->costs()) add(cost.rows, cost.loss);
  own_ = parts_.size();
}

template <class T>
void Sampled<T>::add(const RowsPtr& rows, Var<T> value, double weight) {
  parts_.push_back({rows, value, weight});
}

// A cost on the root's rows belongs to every sample of its example.
template <class T>
void Sampled<T>::spread(const Part& part, std::vector<double>& into) const {
  const T* value = part.value.value().data;
  const std::size_t share = part.rows->is_root() ? samples_ : 1;
  for (std::size_t r = 0; r < into.size(); ++r) into[r] += part.weight * static_cast<double>(value[r / share]);
}

template <class T>
std::vector<double> Sampled<T>::returns(int step, Credit credit) const {
  std::vector<double> result(rows());
  for (const auto& part : parts_)
    if (credit == Credit::whole || part.rows->descends_from(step)) spread(part, result);
  return result;
}

template <class T>
double Sampled<T>::mean_where_chosen(int step, const std::vector<double>& returns) const {
  const auto& [question, choice] = episode_->steps()[step];
  double sum = 0, count = 0;
  for (std::size_t r = 0; r < returns.size(); ++r)
    if (question.chooses(choice.rows->parent[r])) {
      sum += returns[r];
      ++count;
    }
  return sum / count;
}

template <class T>
std::vector<double> Sampled<T>::losses() const {
  std::vector<double> result(rows());
  for (std::size_t i = 0; i < own_; ++i) spread(parts_[i], result);
  return result;
}

template <class T>
double Sampled<T>::mean_loss() const {
  const auto all = losses();
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

template <class T>
Var<T> Sampled<T>::score(const std::vector<std::vector<double>>& signal) {
  auto total = episode_->tape().constant(1, 1);
  std::vector<double> weight;
  for (int t = 0; t < steps(); ++t) total = with_score(total, t, weight = signal[t]);
  return total;
}

template <class T>
Var<T> Sampled<T>::with_score(Var<T> total, int step, std::vector<double>& signal) {
  for (auto& weight : signal) weight /= static_cast<double>(rows());
  return hardgrad::add(total, weighted_sum(episode_->log_probability(step), std::span<const double>(signal)));
}

template <class T>
Var<T> Sampled<T>::mean(const RowsPtr& on, Var<T> value) {
  return sum(value, 1.0 / static_cast<double>(on->is_root() ? examples_ : rows()));
}

template <class T>
Var<T> Sampled<T>::path() {
  auto total = episode_->tape().constant(1, 1);
  for (const auto& cost : episode_->costs()) total = hardgrad::add(total, mean(cost.rows, cost.loss));
  return total;
}

template class Sampled<float>;
template class Sampled<double>;

void leave_one_out(std::vector<double>& returns, int samples) {
  std::vector<double> f(samples);
  for (auto example = returns.begin(); example != returns.end(); example += samples) {
    std::copy_n(example, samples, f.begin());
    for (int k = 0; k < samples; ++k) {
      double sum = 0;  // differences come before the sum, so that equal losses give an exact zero
      for (double other : f) sum += f[k] - other;
      example[k] = sum / (samples - 1);
    }
  }
}

template <class T>
Estimate<T> with_constant_baseline(Sampled<T> sampled, double baseline, Credit credit) {
  const auto score = sampled.score(credit, [baseline](int, std::vector<double>& f) {
    for (auto& value : f) value -= baseline;
  });
  auto surrogate = add(score, sampled.path());
  return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
}
template Estimate<float> with_constant_baseline(Sampled<float>, double, Credit);
template Estimate<double> with_constant_baseline(Sampled<double>, double, Credit);

ParameterInfo samples_parameter(int fallback, int low) {
  return ParameterInfo::integer("samples", fallback, low, 1e6, "independent samples per example");
}
ParameterInfo credit_parameter() {
  return ParameterInfo::flag("reward_to_go", false,
                             "credit a choice only with the costs it can change, not with the whole loss");
}
ParameterInfo baseline_parameter() { return ParameterInfo::real("baseline", 0, -1e12, 1e12, "constant taken off the loss"); }
Credit credit_of(const Settings& settings) { return settings.flag("reward_to_go") ? Credit::reward_to_go : Credit::whole; }

}  // namespace hardgrad
