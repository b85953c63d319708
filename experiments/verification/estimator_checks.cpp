#include "experiments/verification/estimator_checks.hpp"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>

#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/verification/estimates.hpp"

namespace hardgrad::verification {
namespace {

bool finite(const std::vector<double>& x) { return xt::all(xt::isfinite(xt::adapt(x))); }

/// Distance of a batch's estimate and loss from the mean of its examples', relative to the largest entry if that is above 1. 0
/// for coupled examples, which have no such mean.
template <class T>
double apart(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, const std::vector<double>& estimate) {
  if (estimator.couples_examples()) return 0;
  std::vector<double> mean(estimate.size());
  for (int b = 0; b < batch.examples(); ++b) {
    const auto one = estimate_of(estimator, model, batch.select({b}), Key(2));
    add_in_place(mean, xt::adapt(one) / batch.examples());
  }
  return largest_difference(mean, estimate) / std::max(1.0, measurement::largest(estimate));
}

}  // namespace

template <class T>
std::string broken_contract(const Spec& spec, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch) {
  const std::string precision = name_of(precision_of<T>, precisions);
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
  settings.estimand = measurement::Estimand::none;
  measurement::Measurement alone, together;
  const tbb::global_control enough(tbb::global_control::max_allowed_parallelism, 4);  // independent of the machine
  tbb::task_arena(1).execute([&] { alone = measure(spec, estimator, model, batch, settings, Key(3)); });
  tbb::task_arena(4).execute([&] { together = measure(spec, estimator, model, batch, settings, Key(3)); });
  if (alone.mean != together.mean || alone.variance != together.variance) return "the numbers depend on the number of threads";
  return "";
}

template std::string broken_contract(const Spec&, const Estimator<float>&, const Model<float>&, const Batch&);
template std::string broken_contract(const Spec&, const Estimator<double>&, const Model<double>&, const Batch&);

namespace {

constexpr int variance_draws = 4000;
constexpr double variance_level = 0.9999;  // of the interval for the exact variance

}  // namespace

std::optional<Found> moments_beside_draws(const Spec& spec, bool unbiased, const TestModel& tested, std::string& why) {
  const auto untold = [&why](const std::string& reason) -> std::optional<Found> {
    if (why.empty()) why = reason;
    return std::nullopt;
  };
  const auto& structure = tested.model->structure();
  if (const auto reason = why_unsupported(spec, structure); !reason.empty()) return untold(reason);
  const auto batch = tested.batch.select({0});
  const auto estimator = make_estimator<double>(spec, structure, Key(1));
  perturb_state(*estimator);
  try {
    const auto& truth = reference_of(estimator->target(), tested, batch);
    const auto exact = measurement::exact_moments(*estimator, *tested.model, batch, truth.of_example, outcome_cap);
    if (truth.error + exact.mean_error > 1e-3 || exact.trace_error > 0.1 * exact.trace)
      throw NotExact("the quadrature is too rough");
    measurement::MeasureSettings by_draws{
        .replicates = variance_draws, .estimand = measurement::Estimand::none, .level = variance_level};
    const auto drawn = measure(spec, *estimator, *tested.model, batch, by_draws, Key(6));
    const double off = largest_difference(exact.mean, truth.gradient) / std::max(1.0, measurement::largest(truth.gradient));
    const auto [low, high] = drawn.intervals.at("variance");
    const bool mean_wrong = unbiased && !(off < 1e-8 + truth.error + exact.mean_error);
    const double rounding =
        1e-12 * measurement::largest(truth.gradient) * measurement::largest(truth.gradient) + exact.trace_error;
    const bool variance_wrong =
        std::isfinite(drawn.variance) && !(exact.trace > low - rounding && exact.trace < high + rounding);
    return Found{!mean_wrong && !variance_wrong,
                 fmt::format("mean off by {:.1e}; variance {:.4g}, of {} draws {:.4g} ({:.4g} to {:.4g})", off, exact.trace,
                             variance_draws, drawn.variance, low, high)};
  } catch (const NotExact& e) {
    return untold(e.what());
  } catch (const std::exception& e) {
    return Found{false, e.what()};
  }
}

}  // namespace hardgrad::verification
