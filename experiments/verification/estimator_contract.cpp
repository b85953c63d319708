#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>

#include "experiments/measurement/measure.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/estimator_checks.hpp"

namespace hardgrad::verification {
namespace {

bool finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
}

/// Distance of a batch's estimate and loss from the mean of its examples', relative to the largest entry if that is above 1. 0
/// for coupled examples, which have no such mean.
template <class T>
double apart(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, const std::vector<double>& estimate) {
  if (estimator.couples_examples()) return 0;
  std::vector<double> mean(estimate.size());
  for (int b = 0; b < batch.examples(); ++b) {
    const auto one = estimate_of(estimator, model, batch.select({b}), Key(2));
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += one[i] / batch.examples();
  }
  return largest_difference(mean, estimate) / std::max(1.0, measurement::largest(estimate));
}

}  // namespace

template <class T>
std::string broken_contract(const Spec& spec, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch) {
  const std::string precision = sizeof(T) == 4 ? "float" : "double";
  const auto state = estimator.state();
  const auto first = estimate_of(estimator, model, batch, Key(2));
  if (!finite(first)) return "the estimate is not finite in " + precision;
  if (first != estimate_of(estimator, model, batch, Key(2))) return "two estimates with the same noise differ in " + precision;
  if (estimator.state() != state) return "estimate() changes the learned state; only learn() may";
  if (const double off = apart(estimator, model, batch, first); off > (sizeof(T) == 4 ? 1e-3 : 1e-9))
    return fmt::format("the estimate of a batch, or its loss, is not the mean of its examples': off by {:.2g} in {}", off,
                       precision);
  measurement::MeasureSettings settings;
  settings.replicates = 8;
  settings.estimand = "none";
  measurement::Measurement alone, together;
  const tbb::global_control enough(tbb::global_control::max_allowed_parallelism, 4);  // independent of the machine
  tbb::task_arena(1).execute([&] { alone = measure(spec, estimator, model, batch, settings, Key(3)); });
  tbb::task_arena(4).execute([&] { together = measure(spec, estimator, model, batch, settings, Key(3)); });
  if (alone.mean != together.mean || alone.variance != together.variance) return "the numbers depend on the number of threads";
  return "";
}

template std::string broken_contract(const Spec&, const Estimator<float>&, const Model<float>&, const Batch&);
template std::string broken_contract(const Spec&, const Estimator<double>&, const Model<double>&, const Batch&);

}  // namespace hardgrad::verification
