#include "experiments/sweeps/caps.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/support/error.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/sweeps/run_cell.hpp"

namespace hardgrad::sweeps {
namespace {

bool trains(const training::TrainSettings& train) {
  return train.steps > 0 || train.rows > 0 || train.attention_values > 0 || train.cpu_seconds > 0;
}

// Throws NotExact if the first measurement is too large; it is not made unless a first visit says that it is.
void try_measurement(const Cell& cell, const training::Training<double>& training, Key noise) {
  const auto& how = cell.settings.train.measure;
  std::vector<int> first(std::min<std::size_t>(cell.settings.train.measure_batch, training.task->size(tasks::Split::train)));
  std::iota(first.begin(), first.end(), 0);
  const auto batch = training.task->batch(tasks::Split::train, first);
  const auto visits = measurement::visits_needed(*training.estimator, *training.model, batch);
  if (visits * batch.examples() > how.outcome_cap)
    measurement::measure(training.estimator_spec, *training.estimator, *training.model, batch, how, noise);
}

}  // namespace

bool may_exceed_caps(const Cell& cell, int questions) {
  const auto estimator = cell.spec("estimator");
  const auto cap = settings_of(Estimators::instance().at(estimator.name), estimator).real("cap");
  const auto& train = cell.settings.train;
  if (train.measure.method == measurement::Method::exact && !cell.settings.resolved().measure_at.empty()) return true;
  return trains(train) && cell.rows && *cell.rows * train.batch * std::max(1, questions) > cap;
}

std::string why_over_caps(const Cell& cell, const std::shared_ptr<const tasks::Task>& task, const CellKeys& keys) {
  const training::RunKeys run{keys.init, keys.order, keys.noise};
  const auto settings = cell.settings.resolved();
  try {
    auto training = prepared<double>(cell, task, run);
    if (settings.measure.method == measurement::Method::exact && !settings.measure_at.empty())
      try_measurement(cell, training, keys.noise);
    if (trains(settings)) training::train(training, training_alone(settings, 1), run);
  } catch (const NotExact& error) {
    return error.what();
  } catch (const Error&) {  // the run will report it
  }
  return "";
}

}  // namespace hardgrad::sweeps
