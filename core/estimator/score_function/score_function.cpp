#include "core/estimator/score_function/score_function.hpp"

#include <algorithm>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"

namespace hardgrad {

template <class T>
Sampled<T>::Sampled(const Problem<T>& problem, int samples, Costs costs) : samples_(samples) {
  SampleHandler<T> handler(samples, problem.random, problem.batch.id);
  *this = Sampled(problem, samples, handler, costs);
}

template <class T>
Sampled<T>::Sampled(const Problem<T>& problem, int samples, Handler<T>& handler, Costs costs)
    : samples_(samples),
      examples_(problem.batch.examples()),
      episode_(problem.run(handler, costs == Costs::averaged ? CostWeights::equal : CostWeights::unknown)),
      paths_(paths_side_by_side(*episode_, samples)) {
  parts_.reserve(episode_->costs().size());
  for (const auto& cost : episode_->costs()) add(cost.rows, cost.loss, 1, cost.by_column);
  own_ = parts_.size();
}

template <class T>
void Sampled<T>::add(const RowsPtr& rows, Var<T> value, double weight, Var<T> by_column) {
  parts_.push_back({rows, value, by_column, weight});
}

template <class T>
int Sampled<T>::columns(int step, Credit credit) const {
  if (credit == Credit::whole) return 1;
  for (const auto& part : parts_)
    if (part.rows->step == step && part.by_column) return static_cast<int>(part.by_column.cols());
  return 1;
}

template <class T>
std::vector<double> Sampled<T>::returns(int step, Credit credit) const {
  const std::size_t D = columns(step, credit);
  std::vector<double> result(rows() * D);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& part = parts_[i];
    if (part.rows->is_root() && i < own_ && episode_->costs()[i].divergence) continue;  // known before any choice
    if (credit == Credit::reward_to_go && !part.rows->descends_from(step)) continue;
    const bool by_column = D > 1 && part.rows->step == step && part.by_column;
    accumulate<T>(by_column ? part.by_column : part.value, *paths_.through(*part.rows), result, part.weight);
  }
  return result;
}

template <class T>
Choices<T> Sampled<T>::choices() {
  std::vector<std::vector<int>> asking, option;
  for (const auto& step : episode_->steps()) {
    asking.push_back(step.choice.rows->parent);
    option.push_back(step.choice.picked());
  }
  return {*episode_, asking, option};
}

template <class T>
PerChoice Sampled<T>::returns(Credit credit, const std::shared_ptr<const ChoiceLayout>& layout) const {
  PerChoice result{layout, {}};
  result.value.reserve(layout->choices());
  for (int t = 0; t < steps(); ++t) {
    const auto f = returns(t, credit);
    const std::size_t of_row = layout->steps[t].columns, columns = f.size() / rows();
    for (std::size_t c = 0; c < rows() * of_row; ++c) result.value.push_back(f[columns == 1 ? c / of_row : c]);
  }
  return result;
}

template <class T>
PerChoice Sampled<T>::sum_of_own_step(const PerChoice& x) const {
  auto result = sum(x, Along::own_step);
  for (int t = 0; t < steps(); ++t) {
    if (columns(t, Credit::reward_to_go) == 1) continue;
    const auto& step = x.of->steps[t];
    for (std::size_t c = step.choice; c < step.choice + x.of->samples * step.columns; ++c) result.value[c] = x.value[c];
  }
  return result;
}

template <class T>
std::vector<double> Sampled<T>::means_where_chosen(int step, const std::vector<double>& returns) const {
  const auto& [question, choice] = episode_->steps()[step];
  const std::size_t columns = returns.size() / rows();
  std::vector<double> sum(columns), count(columns);
  for (std::size_t r = 0; r < rows(); ++r)
    for (std::size_t d = 0; d < columns; ++d) {
      const std::size_t asked = choice.rows->parent[r];
      if (columns == 1 ? !question.chooses(asked) : question.distribution->support_size(asked * columns + d) == 1) continue;
      sum[d] += returns[r * columns + d];
      ++count[d];
    }
  for (std::size_t d = 0; d < columns; ++d) sum[d] /= count[d];
  return sum;
}

template <class T>
std::vector<double> Sampled<T>::losses() const {
  std::vector<double> result(rows());
  for (std::size_t i = 0; i < own_; ++i)
    accumulate<T>(parts_[i].value, *paths_.through(*parts_[i].rows), result, parts_[i].weight);
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
  for (int t = 0; t < steps(); ++t) total = with_score(total, t, weight = signal[t], episode_->terms().drawn_from);
  return total;
}

template <class T>
Var<T> Sampled<T>::with_score(Var<T> total, int step, std::vector<double>& signal, DrawnFrom of) {
  for (auto& weight : signal) weight /= static_cast<double>(rows());
  const auto log_p =
      signal.size() == rows() ? episode_->log_probability(step, of) : episode_->log_probability_by_column(step, of);
  return hardgrad::add(total, weighted_sum(log_p, std::span<const double>(signal)));
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

template <class T>
Var<T> Sampled<T>::path(std::span<const double> weight) {
  auto total = episode_->tape().constant(1, 1);
  for (const auto& cost : episode_->costs())
    total = hardgrad::add(total, cost.rows->is_root() ? mean(cost.rows, cost.loss) : weighted_sum(cost.loss, weight));
  return total;
}

template class Sampled<float>;
template class Sampled<double>;

template <class T>
Estimate<T> with_constant_baseline(Sampled<T> sampled, double baseline, Credit credit) {
  return score_estimate(std::move(sampled), credit, [baseline](std::vector<double>& f, int) {
    for (auto& value : f) value -= baseline;
  });
}
template Estimate<float> with_constant_baseline(Sampled<float>, double, Credit);
template Estimate<double> with_constant_baseline(Sampled<double>, double, Credit);

template <class T>
Estimate<T> path_estimate(const Problem<T>& problem, int samples, Handler<T>& handler) {
  Sampled<T> run(problem, samples, handler);
  auto surrogate = run.path();
  const double loss = run.mean_loss();
  return {.surrogate = surrogate, .episode = run.release(), .loss = loss};
}
template Estimate<float> path_estimate(const Problem<float>&, int, Handler<float>&);
template Estimate<double> path_estimate(const Problem<double>&, int, Handler<double>&);

void samples_field(Fields& field, int& samples, int low) {
  field(samples, "samples", low, 1e6, "independent samples per example");
}
void credit_field(Fields& field, Credit& credit) {
  bool to_go = credit == Credit::reward_to_go;
  field(to_go, "reward_to_go", "credit a choice only with the costs it can change, not with the whole loss");
  credit = to_go ? Credit::reward_to_go : Credit::whole;
}
void baseline_field(Fields& field, double& baseline) {
  field(baseline, "baseline", -1e12, 1e12, "constant subtracted from the loss");
}

template <class T>
Estimate<T> score_against(const Problem<T>& problem, int samples, Credit credit, Handler<T>& reference) {
  Sampled<T> sampled(problem, samples), against(problem, 1, reference);
  const auto score = sampled.score(credit, [&](int t, std::vector<double>& f) {
    subtract_baseline(f, against.returns(t, credit), against.columns(t, credit));
  });
  Estimate<T> estimate{.surrogate = add(score, sampled.path()), .loss = sampled.mean_loss()};
  estimate.episode = sampled.release();
  estimate.others.push_back(against.release());
  return estimate;
}

template Estimate<float> score_against(const Problem<float>&, int, Credit, Handler<float>&);
template Estimate<double> score_against(const Problem<double>&, int, Credit, Handler<double>&);

}  // namespace hardgrad
