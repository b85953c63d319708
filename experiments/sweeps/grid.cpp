#include "experiments/sweeps/grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/estimator/evaluations.hpp"
#include "core/support/error.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/sweeps/cell_data.hpp"
#include "experiments/sweeps/run_cell.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/training/schedule.hpp"

namespace hardgrad::sweeps {
namespace {

constexpr std::size_t most_cells = 1'000'000;

// Cells that cannot fit the caps on their costs: known before they run, so that they are skipped instead of failing in every
// run.

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

// Whether a gradient may take more rows than the estimator's `cap`, by its stated cost (Cell::rows), or whether moments are
// exact, with a cap of their own. `questions`: of the model.
bool may_exceed_caps(const Cell& cell, int questions) {
  const auto estimator = cell.spec("estimator");
  const auto cap = settings_of(Estimators::instance().at(estimator.name), estimator).real("cap");
  const auto& train = cell.settings.train;
  if (train.measure.method == measurement::Method::exact && !cell.settings.resolved().measure_at.empty()) return true;
  return trains(train) && cell.rows && *cell.rows * train.batch * std::max(1, questions) > cap;
}

// Why the first training gradient takes more rows than `cap`, or the first exact measurement more visits than
// measure.outcome_cap; empty if they fit. They are tried, as far as that shows it.
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

}  // namespace

Grid::Grid(const SweepConfig& config, TaskPool& tasks)
    : config_(config), tasks_(tasks), excluded_(config.excludes.size()), overridden_(config.overrides.size()) {
  for (const auto& group : config_.axes) {
    total_ *= group.front().values.size();
    if (total_ > most_cells)
      throw UsageError(fmt::format("{}: grid: more than {} cells; split the sweep", config_.file, most_cells));
  }
}

AxisValues Grid::axes_at(std::size_t number) const {
  AxisValues axes;
  for (auto group = config_.axes.rbegin(); group != config_.axes.rend(); ++group) {  // the last varies fastest
    const auto length = group->front().values.size();
    for (const auto& axis : *group) axes[axis.name] = axis.values[number % length];
    number /= length;
  }
  if (!axes.contains("model")) {
    const auto& entry = tasks::Tasks::instance().at(Spec::parse(axes.at("task")).name);
    axes["model"] = canonical_spec("model", entry.default_model);
  }
  return axes;
}

void Grid::check(const Cell& cell) {
  try {
    cell.settings.resolved();
    training::annealed(cell.spec("estimator"), cell.settings.train.anneal, 1);
  } catch (const UsageError& e) {
    throw UsageError(fmt::format("{}: {} (in {})", config_.file, e.what(), cell.label()));
  }
  if (const auto& train = cell.settings.train; train.evaluate_split == train.judging_split())
    for (const auto& [name, what] : train.choosing()) optimistic_.insert(name);
  // Metrics depend on the task, not on the seed of its data.
  if (const auto& what = cell.settings.train.monitor; what != "loss" && monitored_.insert({cell.axes.at("task"), what}).second)
    more_is_better(config_, "train.monitor", what, cell, tasks_);
  if (cell.settings.train.measure.method == measurement::Method::exact && config_.precision != Precision::float64)
    throw UsageError(fmt::format("{}: measure.method = \"exact\": needs precision = \"double\"", config_.file));
}

const Grid::Fit& Grid::fit(const Cell& cell, bool posterior) {
  const std::tuple key{cell.axes.at("task"), cell.axes.at("model"), posterior};
  if (const auto it = fits_.find(key); it != fits_.end()) return it->second;
  const CellKeys keys(config_.seed, cell.axes);
  const auto task = tasks_.get(data_of(config_.seed, cell));
  Fit found;
  try {
    found.model = tasks::make_model_for<float>(*task, cell.spec("model"), keys.init, posterior);
  } catch (const UsageError& e) {
    found.refusal = e.what();
  }
  return fits_.emplace(key, std::move(found)).first->second;
}

// The networks that the cell starts from or stays near, once for all cells with the same ones and the same data.
void Grid::check_files(const Cell& cell) {
  const auto& settings = cell.settings;
  if (networks_of(settings).empty()) return;
  const auto data = data_of(config_.seed, cell);
  if (!checked_.emplace(data, settings.start, settings.reference, settings.start_overlap).second) return;
  try {
    check_networks(cell, *tasks_.get(data));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", config_.file, error.what()));
  }
}

// Once for all cells that differ only in the seed.
const std::string& Grid::over_caps(const Cell& cell, int questions) {
  const auto& measure = cell.settings.train.measure;
  const auto kind = fmt::format("{}{} {} {}", kind_of(cell.axes), cell.settings.train.batch, cell.settings.train.measure_batch,
                                measure.method == measurement::Method::exact ? measure.outcome_cap : 0);
  const auto [it, added] = over_caps_.try_emplace(kind);
  if (added && may_exceed_caps(cell, questions))
    it->second = why_over_caps(cell, tasks_.get(data_of(config_.seed, cell)), CellKeys(config_.seed, cell.axes));
  return it->second;
}

void Grid::each(const std::function<void(Cell&&)>& f) {
  std::unordered_set<std::string> hashes;
  for (std::size_t i = 0; i < total_; ++i) {
    Cell cell;
    cell.axes = axes_at(i);
    bool out = false;
    for (std::size_t e = 0; e < config_.excludes.size(); ++e)
      if (config_.excludes[e].matches(cell.axes)) out = excluded_[e] = true;
    if (out) continue;
    cell.settings = settings_of(config_, cell.axes, &overridden_);
    check(cell);
    cell.data_hash = tasks_.data_hash(data_of(config_.seed, cell));
    cell.hash = text_hash(identity(config_.precision, config_.seed, cell));
    cell.number = hashes.size();
    if (!hashes.insert(cell.hash).second) continue;  // zipped lists may repeat a combination
    check_files(cell);
    const auto estimator = cell.spec("estimator");
    const auto& [model, refusal] = fit(cell, wants_posterior(estimator));
    cell.skip = refusal;
    if (refusal.empty()) {
      auto structure = model->structure();
      structure.reference |= !cell.settings.reference.empty();
      cell.skip = training::why_untrainable(estimator, structure, cell.settings.train);
    }
    if (cell.skip.empty()) {
      cell.rows = stated_rows(estimator, model->structure(), cell.settings.train.steps > 0);
      cell.skip = over_caps(cell, model->structure().steps());
      if (!cell.skip.empty()) cell.rows.reset();
    }
    f(std::move(cell));
  }
}

std::vector<std::string> Grid::warnings() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < excluded_.size(); ++i)
    if (!excluded_[i]) lines.push_back(config_.excludes[i].where + ": this [[exclude]] matches no cell");
  for (const auto& name : optimistic_)
    lines.push_back(
        fmt::format("{}: train.{}: selects by the split of the last evaluation, whose results are then optimistic; "
                    "train.final_split = \"test\" uses the other split",
                    config_.file, name));
  for (std::size_t i = 0; i < overridden_.size(); ++i)
    if (!overridden_[i]) lines.push_back(config_.overrides[i].when.where + ": this [[override]] matches no cell");
  return lines;
}

}  // namespace hardgrad::sweeps
