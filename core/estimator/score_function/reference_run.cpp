#include "core/estimator/score_function/reference_run.hpp"

#include "core/autodiff/elementwise.hpp"

namespace hardgrad {

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
