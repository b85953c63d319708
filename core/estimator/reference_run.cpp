#include "core/estimator/reference_run.hpp"

#include "core/autodiff/elementwise.hpp"

namespace hardgrad {

template <class T>
Estimate<T> score_against(const Problem<T>& problem, int samples, Credit credit, Chooser<T>& reference) {
  Sampled<T> sampled(problem, samples), against(problem, 1, reference);
  std::vector<std::vector<double>> signal;
  for (int t = 0; t < sampled.steps(); ++t) {
    signal.push_back(sampled.returns(t, credit));
    const auto baseline = against.returns(t, credit);  // [B]
    for (std::size_t r = 0; r < signal.back().size(); ++r) signal.back()[r] -= baseline[r / samples];
  }
  Estimate<T> estimate{.surrogate = add(sampled.score(signal), sampled.path()), .loss = sampled.mean_loss()};
  estimate.episode = sampled.release();
  estimate.others.push_back(against.release());
  return estimate;
}

template Estimate<float> score_against(const Problem<float>&, int, Credit, Chooser<float>&);
template Estimate<double> score_against(const Problem<double>&, int, Credit, Chooser<double>&);

}  // namespace hardgrad
