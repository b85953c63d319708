#include <fmt/format.h>

#include <cmath>

#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/estimator_checks.hpp"

namespace hardgrad::verification {
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
  stir(*estimator);
  try {
    const auto& truth = truth_of(estimator->target(), tested, batch);
    const auto exact = measurement::exact_moments(*estimator, *tested.model, batch, truth.of_example, outcome_cap);
    if (truth.error + exact.mean_error > 1e-3 || exact.trace_error > 0.1 * exact.trace)
      throw NotExact("the quadrature is too rough");
    measurement::MeasureSettings by_draws{.replicates = variance_draws, .estimand = "none", .level = variance_level};
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
