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

/// The truth where the parameters are moved by so much along a direction [P] that favours none of them.
class Moved {
 public:
  Moved(const Target& target, const TestModel& tested) : target_(target), tested_(tested) {
    for (std::size_t i = 0; i < tested.model->parameters().size(); ++i)
      along_.push_back(std::sin(1.3 * static_cast<double>(i + 1)));
  }
  Truth by(double distance) const {
    auto& parameters = tested_.model->parameters();
    std::vector<std::vector<double>> held;
    std::size_t i = 0;
    for (auto& parameter : parameters) {
      held.push_back(parameter.value.data);
      for (double& x : parameter.value.data) x += distance * along_[i++];
    }
    auto truth = exact_truth(target_, *tested_.model, tested_.batch, outcome_cap);
    for (std::size_t k = 0; auto& parameter : parameters) parameter.value.data = std::move(held[k++]);
    return truth;
  }
  const std::vector<double>& along() const { return along_; }

 private:
  const Target& target_;
  const TestModel& tested_;
  std::vector<double> along_;
};

}  // namespace

std::optional<Found> slope_of_value(const Target& target, const TestModel& tested) {
  if (target.entry().field) return std::nullopt;
  const Moved moved(target, tested);
  try {
    const auto truth = moved.by(aside);
    const double scale = std::max(1.0, largest(truth.gradient));
    if (truth.error > allowed / 10 * scale) return std::nullopt;  // the quadrature is too rough
    const double slope = std::inner_product(moved.along().begin(), moved.along().end(), truth.gradient.begin(), 0.0);
    const double found = (moved.by(aside + step).value - moved.by(aside - step).value) / (2 * step);
    return Found{std::abs(found - slope) <= allowed * scale,
                 fmt::format("slope along one direction {:.8g}, by differences of the value {:.8g}", slope, found)};
  } catch (const NotExact&) {
    return std::nullopt;
  } catch (const std::exception& e) {
    return Found{false, e.what()};
  }
}

}  // namespace hardgrad::verification
