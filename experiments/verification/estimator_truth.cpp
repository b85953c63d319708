#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "experiments/measurement/reference_gradient.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/estimator_checks.hpp"

namespace hardgrad::verification {
namespace {

constexpr double step = 1e-4, allowed = 1e-5;
constexpr double aside = 0.03;  // the initial parameters may be at a kink of a target

/// A fixed direction [P] that involves every parameter.
std::vector<double> direction(std::size_t size) {
  std::vector<double> d(size);
  for (std::size_t i = 0; i < size; ++i) d[i] = std::sin(1.3 * static_cast<double>(i + 1));
  return d;
}

/// Moves parameters along a direction during its lifetime, also if an exception is thrown.
class Moved {
 public:
  Moved(ParameterSet<double>& parameters, const std::vector<double>& along, double by) : parameters_(parameters) {
    std::size_t i = 0;
    for (auto& parameter : parameters_) {
      held_.push_back(parameter.value.storage());
      for (double& x : parameter.value) x += by * along[i++];
    }
  }
  Moved(const Moved&) = delete;
  ~Moved() {
    for (std::size_t k = 0; auto& parameter : parameters_) parameter.value.storage() = std::move(held_[k++]);
  }

 private:
  ParameterSet<double>& parameters_;
  std::vector<std::vector<double>> held_;
};

/// Caches a function of a target and a network for all estimators.
template <class V>
const V& once(std::map<std::string, V>& known, const std::string& key, const std::function<V()>& make) {
  static std::mutex one_at_a_time;  // Python may call from several threads
  const std::lock_guard lock(one_at_a_time);
  const auto entry = known.find(key);
  return entry != known.end() ? entry->second : known.emplace(key, make()).first->second;
}

std::optional<Found> compared_slope(const Target& target, const TestModel& tested) {
  auto& parameters = tested.model->parameters();
  const auto along = direction(parameters.size());
  const auto truth_at = [&](double by) {
    const Moved moved(parameters, along, by);
    return measurement::exact_reference(target, *tested.model, tested.batch, outcome_cap);
  };
  try {
    const auto truth = truth_at(aside);
    const double scale = std::max(1.0, measurement::largest(truth.gradient));
    if (truth.error > allowed / 10 * scale) return std::nullopt;  // the quadrature is too rough
    const double slope = std::inner_product(along.begin(), along.end(), truth.gradient.begin(), 0.0);
    const double found = (truth_at(aside + step).value - truth_at(aside - step).value) / (2 * step);
    return Found{std::abs(found - slope) <= allowed * scale,
                 fmt::format("slope along one direction {:.8g}, by differences of the value {:.8g}", slope, found)};
  } catch (const NotExact&) {
    return std::nullopt;
  } catch (const std::exception& e) {
    return Found{false, e.what()};
  }
}

}  // namespace

const measurement::ReferenceGradient& reference_of(const Target& target, const TestModel& tested, const Batch& batch) {
  static std::map<std::string, measurement::ReferenceGradient> known;
  return once<measurement::ReferenceGradient>(
      known, fmt::format("{} {} {}", target.text(), tested.name, fmt::join(batch.id, " ")),
      [&] { return measurement::exact_reference(target, *tested.model, batch, outcome_cap); });
}

std::optional<Found> slope_of_value(const Target& target, const TestModel& tested) {
  static std::map<std::string, std::optional<Found>> known;
  if (target.entry().non_conservative) return std::nullopt;
  return once<std::optional<Found>>(known, target.text() + " " + tested.name, [&] { return compared_slope(target, tested); });
}

}  // namespace hardgrad::verification
