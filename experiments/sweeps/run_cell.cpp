// One cell: train and measure; whatever goes wrong becomes part of the record.
#include <fmt/format.h>

#include <exception>
#include <filesystem>

#include "core/support/error.hpp"
#include "core/support/usage.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/sweeps/run_cell.hpp"

namespace hardgrad {
namespace {

RunKeys run_keys(const CellKeys& keys) { return {keys.init, keys.order, keys.noise}; }

template <class T>
void train_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, const std::string& checkpoint, const Stop& stop,
                CellRecord& record) {
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
  record.checkpoint_hash = read_seal(checkpoint).hash;
}

}  // namespace

CellRecord run_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, const std::string& checkpoint, const Stop& stop) {
  CellRecord record;
  record.axes = cell.axes;
  record.estimator_settings = settings_json("estimator", cell.axes.at("estimator"));
  record.run_settings = settings_json(cell.settings);
  record.plan_hash = plan.hash;
  record.cell_hash = cell.hash;
  record.identity = identity(plan.precision, plan.seed, cell);
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
  record.costs["missed_hints"] = record.result.missed_hints;
  record.costs["cpu_seconds"] = thread_seconds() - start;
  return record;
}

}  // namespace hardgrad
