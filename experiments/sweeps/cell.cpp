// One cell: train and measure; whatever goes wrong becomes part of the record.
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>

#include "core/support/error.hpp"
#include "core/support/usage.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/sweeps/run.hpp"

namespace hardgrad {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

RunKeys run_keys(const CellKeys& keys) { return {keys.init, keys.order, keys.noise}; }

template <class T>
void train_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, const std::string& checkpoint,
                const std::function<bool()>& stop, CellRecord& record) {
  const CellKeys keys(plan.seed, cell.axes);
  const auto settings = cell.settings.resolved();
  const auto task = tasks.get(cell.axes.at("task"), keys.data);
  record.log += fmt::format("data: {}\n", task->provenance());
  auto training = prepare<T>(task, cell.spec("model"), cell.spec("estimator"), settings, run_keys(keys));
  record.log += fmt::format("parameters: {}\n", training.model->parameters().size());
  record.result = train(training, settings, run_keys(keys), stop);
  if (!cell.settings.checkpoint) return;
  auto saved = checkpoint_of(training);
  saved.task = cell.axes.at("task");
  saved.model = cell.axes.at("model");
  saved.estimator = cell.axes.at("estimator");
  saved.seed = run_seed(plan.seed, cell.axes);
  saved.precision = plan.precision;
  save_checkpoint(checkpoint, saved);
  record.checkpoint = std::filesystem::path(checkpoint).filename();
}

template <class T>
double trial(const Plan& plan, const Cell& cell, TaskPool& tasks, double& bytes) {
  const CellKeys keys(plan.seed, cell.axes);
  auto settings = cell.settings.resolved();
  const auto points = static_cast<double>(settings.measure_at.size());
  const int replicates = settings.measure.replicates, steps = settings.steps;
  const auto task = tasks.get(cell.axes.at("task"), keys.data);
  auto training = prepare<T>(task, cell.spec("model"), cell.spec("estimator"), settings, run_keys(keys));
  bytes =
      3e4 + 24.0 * steps / settings.log_every +
      points * 16.0 * static_cast<double>(std::min<std::size_t>(training.model->parameters().size(), 1000));
  settings.steps = std::min(steps, 3);
  settings.measure_at = points > 0 ? std::vector<int>{0} : std::vector<int>{};
  settings.measure.replicates = 4;
  settings.evaluate_every = 0;
  const auto start = Clock::now();
  const auto result = train(training, settings, run_keys(keys));
  const double step = settings.steps ? result.seconds / settings.steps : 0;
  const double draw = result.measurements.empty() ? 0 : result.measurements[0].measurement.seconds;
  const double rest = std::max(0.0, since(start) - result.seconds - 4 * draw);  // evaluation, exact gradients
  return step * steps + rest + points * (rest / 2 + replicates * draw);
}

}  // namespace

CellRecord run_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, const std::string& checkpoint,
                    const std::function<bool()>& stop) {
  CellRecord record;
  record.axes = cell.axes;
  record.estimator_settings = settings_json("estimator", cell.axes.at("estimator"));
  record.plan_hash = plan.hash;
  record.cell_hash = cell.hash;
  record.configuration = plan.config;
  const double start = thread_seconds();
  const auto fail = [&](const std::string& reason) {
    record.status = CellStatus::failed;
    record.reason = reason;
    record.log += "failed: " + reason + "\n";
  };
  if (!cell.skip.empty()) {
    record.status = CellStatus::skipped;
    record.reason = cell.skip;
    return record;
  }
  try {
    if (plan.precision == "double")
      train_cell<double>(plan, cell, tasks, checkpoint, stop, record);
    else
      train_cell<float>(plan, cell, tasks, checkpoint, stop, record);
  } catch (const Interrupted&) {
    throw;
  } catch (const Unsupported& e) {
    record.status = CellStatus::skipped;
    record.reason = e.what();
  } catch (const std::bad_alloc&) {
    fail("out of memory; try fewer --jobs or a smaller batch");
  } catch (const std::exception& e) {
    fail(e.what());
  }
  record.costs["tape_bytes"] = record.result.tape_bytes;
  record.costs["cpu_seconds"] = thread_seconds() - start;
  return record;
}

CostEstimate estimate_cost(const Plan& plan, const std::vector<const Cell*>& cells, TaskPool& tasks,
                           double budget) {
  const auto start = Clock::now();
  std::map<std::string, std::pair<double, double>> tried;  // kind of cell -> seconds, bytes
  CostEstimate total;
  double known = 0, unknown = 0;
  for (const auto* cell : cells) {
    if (!cell->skip.empty()) continue;
    std::string kind;
    for (const auto& [name, value] : cell->axes)
      if (name != "seed") kind += name + "=" + value + "\n";
    if (!tried.contains(kind)) {
      if (since(start) > budget) {
        ++unknown;
        continue;
      }
      std::pair<double, double> cost{0, 3e4};
      try {
        cost.first = plan.precision == "double" ? trial<double>(plan, *cell, tasks, cost.second)
                                                : trial<float>(plan, *cell, tasks, cost.second);
      } catch (const std::exception&) {  // the run will tell
      }
      tried[kind] = cost;
    }
    ++known;
    total.seconds += tried[kind].first;
    total.bytes += tried[kind].second;
  }
  if (known > 0) {
    total.seconds *= (known + unknown) / known;
    total.bytes *= (known + unknown) / known;
  }
  return total;
}

}  // namespace hardgrad
