#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "experiments/measurement/truth.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/estimator_checks.hpp"

namespace hardgrad::verification {
namespace {

constexpr double step = 1e-4, allowed = 1e-5;
constexpr double aside = 0.03;  // a network's own parameters may be where a target has a kink

/// A direction [P] that favours no parameter.
std::vector<double> direction(std::size_t size) {
  std::vector<double> d(size);
  for (std::size_t i = 0; i < size; ++i) d[i] = std::sin(1.3 * static_cast<double>(i + 1));
  return d;
}

/// Parameters moved along a direction for as long as this lives, whatever is thrown meanwhile.
class Moved {
 public:
  Moved(ParameterSet<double>& parameters, const std::vector<double>& along, double by) : parameters_(parameters) {
    std::size_t i = 0;
    for (auto& parameter : parameters_) {
      held_.push_back(parameter.value.data);
      for (double& x : parameter.value.data) x += by * along[i++];
    }
  }
  Moved(const Moved&) = delete;
  ~Moved() {
    for (std::size_t k = 0; auto& parameter : parameters_) parameter.value.data = std::move(held_[k++]);
  }

 private:
  ParameterSet<double>& parameters_;
  std::vector<std::vector<double>> held_;
};

}  // namespace

std::optional<Found> slope_of_value(const Target& target, const TestModel& tested) {
  if (target.entry().field) return std::nullopt;
  auto& parameters = tested.model->parameters();
  const auto along = direction(parameters.size());
  const auto truth_at = [&](double by) {
    const Moved moved(parameters, along, by);
    return exact_truth(target, *tested.model, tested.batch, outcome_cap);
  };
  try {
    const auto truth = truth_at(aside);
    const double scale = std::max(1.0, largest(truth.gradient));
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

}  // namespace hardgrad::verification
