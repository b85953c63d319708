#include "core/estimator/importance/importance.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"

namespace hardgrad {

template <class T>
ImportanceSamples<T>::ImportanceSamples(const Problem<T>& problem, int samples)
    : ImportanceSamples(Sampled<T>(problem, samples, Costs::weighted)) {}

template <class T>
ImportanceSamples<T>::ImportanceSamples(Sampled<T> sampled)
    : samples_(sampled.samples()),
      sampled_(std::move(sampled)),
      log_weight_(sampled_.losses()),
      log_ratio_(log_weight_.size()) {
  auto& episode = sampled_.episode();
  for (int t = 0; t < sampled_.steps(); ++t) {
    const T* p = episode.log_probability(t, DrawnFrom::prior).value().data;
    const T* q = episode.log_probability(t, DrawnFrom::posterior).value().data;
    for (std::size_t r = 0; r < log_ratio_.size(); ++r) log_ratio_[r] += static_cast<double>(p[r]) - static_cast<double>(q[r]);
  }
  for (std::size_t r = 0; r < log_weight_.size(); ++r) log_weight_[r] = log_ratio_[r] - log_weight_[r];
}

template <class T>
Var<T> ImportanceSamples<T>::surrogate(const std::vector<Slopes>& slopes) {
  auto& episode = sampled_.episode();
  const double share = 1.0 / static_cast<double>(slopes.size());
  Slopes row(log_weight_.size());
  std::vector<double> root(slopes.size());  // a cost of the root is part of every sample's loss
  for (std::size_t b = 0, r = 0; b < slopes.size(); ++b)
    for (int k = 0; k < samples_; ++k, ++r) {
      row.log_p[r] = share * slopes[b].log_p[k];
      row.log_q[r] = share * slopes[b].log_q[k];
      row.loss[r] = share * slopes[b].loss[k];
      root[b] += row.loss[r];
    }
  auto total = episode.tape().constant(1, 1);
  const auto include = [&](Var<T> column, const std::vector<double>& weight) {
    total = add(total, weighted_sum(column, std::span<const double>(weight)));
  };
  for (int t = 0; t < sampled_.steps(); ++t) {
    include(episode.log_probability(t, DrawnFrom::prior), row.log_p);
    include(episode.log_probability(t, DrawnFrom::posterior), row.log_q);
  }
  for (const auto& cost : episode.costs()) include(cost.loss, cost.rows->is_root() ? root : row.loss);
  return total;
}

template <class T>
Estimate<T> ImportanceSamples<T>::estimate(const std::function<double(int, Slopes&)>& objective) {
  std::vector<Slopes> slopes;
  double mean = 0;
  for (int b = 0; b < examples(); ++b) mean += objective(b, slopes.emplace_back(samples_)) / examples();
  auto total = surrogate(slopes);
  return {.surrogate = total, .episode = sampled_.release(), .loss = mean};
}

std::string samples_of_bound(const SamplesConfig<>& config) {
  return "importance_bound[samples=" + std::to_string(config.samples) + "]";
}

template class ImportanceSamples<float>;
template class ImportanceSamples<double>;

}  // namespace hardgrad
