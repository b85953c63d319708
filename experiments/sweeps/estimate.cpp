#include "experiments/sweeps/estimate.hpp"

#include <tbb/task_arena.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <numeric>
#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/cell.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/sweeps/run.hpp"
#include "experiments/sweeps/run_cell.hpp"

namespace hardgrad::sweeps {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of a further logged step, measurement and evaluation, compressed: measured on bits, the NOT gate and questions.
constexpr double bytes_per_log = 28, bytes_per_point = 250, bytes_per_evaluation = 25;

// The unit costs of one kind of cell: seconds on one core.
struct Trial {
  double load = 0;                        // loading data, shared by all cells of a task and seed
  double prepare = 0;                     // creating network and estimator
  double step = 0;                        // per example of the batch
  double rows = 0, attention_values = 0;  // per step and example
  double evaluation = 0;                  // per example
  double truth = 0;                       // per measured example; an exact measurement completely
  double replicate = 0;                   // per measured example
  double write = 0;                       // writing its record
  double bytes = 0, checkpoint_bytes = 0, point_bytes = 0;
  bool cut = false;

  static constexpr double Trial::*costs[] = {&Trial::load,
                                             &Trial::rows,
                                             &Trial::attention_values,
                                             &Trial::prepare,
                                             &Trial::step,
                                             &Trial::evaluation,
                                             &Trial::truth,
                                             &Trial::replicate,
                                             &Trial::write,
                                             &Trial::bytes,
                                             &Trial::checkpoint_bytes,
                                             &Trial::point_bytes};
};

double evaluated(const tasks::Task& task, const training::TrainSettings& settings, tasks::Split split) {
  const auto all = static_cast<double>(task.size(split));
  return settings.evaluate_examples > 0 ? std::min<double>(settings.evaluate_examples, all) : all;
}
double trained_on(const tasks::Task& task, const training::TrainSettings& settings) {
  return std::min<double>(settings.batch, static_cast<double>(task.size(tasks::Split::train)));
}
double measured(const tasks::Task& task, const training::TrainSettings& settings) {
  return std::min<double>(settings.measure_batch, static_cast<double>(task.size(tasks::Split::train)));
}

// A file's size, from writing and removing one. Seconds are counted only once.
template <class F>
double size_of_written(F write) {
  const auto path = (std::filesystem::temp_directory_path() / ("hardgrad-trial-" + storage::random_name() + ".h5")).string();
  write(path);
  const auto size = static_cast<double>(std::filesystem::file_size(path));
  std::filesystem::remove(path);
  return size;
}

template <class T>
measurement::Measurement try_measurement(Trial& trial, const training::Training<T>& training,
                                         const training::TrainSettings& settings, Key noise, const Stop& stop) {
  const auto examples = static_cast<int>(std::min(4.0, measured(*training.task, settings)));
  std::vector<int> first(examples);
  std::iota(first.begin(), first.end(), 0);
  const auto batch = training.task->batch(tasks::Split::train, first);
  auto how = settings.measure;
  how.replicates = std::min(how.replicates, 8);
  how.stop = stop;
  measurement::ReferenceGradients<T> references(*training.model, batch, how.leaf_cap, stop);
  measurement::Measurement result;
  const auto timed = [&] {
    const auto start = Clock::now();
    try {
      result = measure<T>(training.estimator_spec, *training.estimator, *training.model, batch, how, noise, &references);
    } catch (const Interrupted&) {
      trial.cut = true;
    }
    return since(start);
  };
  const double cold = timed();  // with the exact gradients and the entropy, which replicates do not need
  trial.truth = cold / examples;
  if (how.method == measurement::Method::exact || trial.cut) return result;
  timed();                                                                      // warm replicates
  const double replicate = std::isfinite(result.seconds) ? result.seconds : 0;  // NaN if the measurement was skipped
  trial.replicate = replicate / examples;
  trial.truth = std::max(0.0, cold - how.replicates * replicate) / examples;
  return result;
}

// Runs some steps, and an evaluation of one batch.
template <class T>
training::TrainResult try_training(Trial& trial, training::Training<T>& training, training::TrainSettings settings,
                                   const training::RunKeys& keys, const Stop& stop) {
  const int steps = settings.steps;
  const double examples = std::min(64.0, evaluated(*training.task, settings, settings.judging_split()));
  settings.evaluate_every = 0;
  settings.evaluate_examples = std::max(1, static_cast<int>(examples));
  settings.keep_best = false;
  settings.measure_at.clear();
  settings.log_every = 1;
  training::TrainResult result;
  for (int more : {3, 30, 300}) {  // more only if the first were quick
    settings.steps = std::min(steps, training.step + more);
    const auto start = Clock::now();
    try {
      result = train(training, settings, keys, stop);
    } catch (const Interrupted&) {
      if (trial.step == 0) throw;
      break;  // the shorter round before is enough
    }
    const auto& log = result.log;
    const double stepping = log.empty() ? 0 : log.back().seconds;
    if (!log.empty())
      trial.step = (log.size() > 1 ? (stepping - log.front().seconds) / static_cast<double>(log.size() - 1) : stepping) /
                   trained_on(*training.task, settings);
    const double trained = static_cast<double>(log.size()) * trained_on(*training.task, settings);
    if (!log.empty()) {
      trial.rows = result.rows / trained;
      trial.attention_values = result.attention_values / trained;
    }
    if (examples > 0) trial.evaluation = (since(start) - result.seconds) / examples;
    if (since(start) > 0.05 || settings.steps == steps) break;
  }
  return result;
}

template <class T>
void run_trial(Trial& trial, const Plan& plan, const Cell& cell, TaskPool& tasks, const Stop& stop) {
  const CellKeys keys(plan.seed, cell.axes);
  const training::RunKeys run{keys.init, keys.order, keys.noise};
  const auto settings = cell.settings.resolved();
  auto start = Clock::now();
  const auto task = tasks.get(data_of(plan.seed, cell));
  trial.load = since(start);
  start = Clock::now();
  auto training = prepared<T>(cell, task, run);
  trial.prepare = since(start);
  const auto parameters = static_cast<double>(training.model->parameters().size());
  trial.point_bytes = bytes_per_point + (parameters <= 1000 ? 16 * parameters : 0);
  auto record = labelled_record(plan, cell);
  measurement::Measurement measurement;
  try {
    if (!settings.measure_at.empty()) measurement = try_measurement(trial, training, settings, keys.noise, stop);
  } catch (const NotExact&) {  // the run will report it
  }
  try {
    start = Clock::now();
    record.result = try_training(trial, training, settings, run, stop);
  } catch (const Interrupted&) {
    trial.cut = true;
    trial.step = std::max(trial.step, since(start) / trained_on(*task, settings));
  }
  if (!settings.measure_at.empty()) record.result.measurements.push_back({0, measurement});
  double write = 0;
  trial.bytes = size_of_written([&](const std::string& path) {
    start = Clock::now();
    storage::append_to_file(path, storage::cell_bytes(record, 1));
    write = since(start);
  });
  trial.bytes -= bytes_per_log * static_cast<double>(record.result.log.size());  // counted separately by each cell's steps
  trial.write = write;
  if (cell.settings.checkpoint)
    trial.checkpoint_bytes =
        size_of_written([&](const std::string& path) { storage::save_checkpoint(path, storage::checkpoint_of(training)); });
}

// On this thread alone, as a cell of a run with as many jobs as cores. False if it throws: the run will report it.
bool run_trial(Trial& trial, const Plan& plan, const Cell& cell, TaskPool& tasks, const Stop& stop) {
  tbb::task_arena alone(1);
  try {
    alone.execute([&] {
      if (plan.precision == Precision::float64)
        run_trial<double>(trial, plan, cell, tasks, stop);
      else
        run_trial<float>(trial, plan, cell, tasks, stop);
    });
  } catch (const std::exception&) {
    return false;
  } catch (const Interrupted&) {
    return false;
  }
  return true;
}

// The work of a cell, scaled from a trial of its kind.
struct Work {
  double steps = 0, evaluations = 0, seconds = 0;
};

Work work_of(const Cell& cell, const tasks::Task& task, const Trial& trial) {
  const auto settings = cell.settings.resolved();
  // A reached target or patience can shorten it.
  const double trained = trained_on(task, settings);
  Work work{.steps = static_cast<double>(settings.steps)};
  for (const auto& [limit, cost] : {std::pair{settings.rows, trial.rows},
                                    {settings.attention_values, trial.attention_values},
                                    {settings.cpu_seconds, trial.step}})
    if (limit > 0 && cost > 0) work.steps = std::min(work.steps, std::ceil(limit / (cost * trained)));
  work.evaluations = settings.keep_best;  // in addition to the last
  if (settings.evaluate_every > 0) work.evaluations += std::ceil(work.steps / settings.evaluate_every);
  const double replicates = settings.measure.method == measurement::Method::exact ? 0 : settings.measure.replicates;
  const auto points = static_cast<double>(settings.measure_at.size());
  work.seconds = trial.prepare + trial.step * (work.steps + cell.settings.start_steps) * trained +
                 (work.evaluations * evaluated(task, settings, settings.evaluate_split) +
                  evaluated(task, settings, settings.judging_split())) *
                     trial.evaluation +
                 points * measured(task, settings) * (trial.truth + replicates * trial.replicate) + trial.write;
  return work;
}

// The mean of each cost over some trials.
Trial mean_of(const std::vector<const Trial*>& trials) {
  Trial mean;
  for (const auto* trial : trials) {
    for (auto cost : Trial::costs) mean.*cost += trial->*cost / static_cast<double>(trials.size());
    mean.cut |= trial->cut;
  }
  return mean;
}

struct Kind {
  const Cell* cell = nullptr;
  bool tried = false;
  Trial trial;
};

}  // namespace

CostEstimate estimate_cost(const Plan& plan, const std::vector<const Cell*>& cells, TaskPool& tasks, int jobs, double budget) {
  const auto begin = Clock::now();
  const auto kind_name = [](const Cell& cell) {
    return cell.axes.at("task") + "\n" + cell.axes.at("model") + "\n" + cell.axes.at("estimator") + "\n" +
           (cell.settings.train.measure.method == measurement::Method::exact ? "exact" : "sampled");
  };
  std::map<std::string, Kind> kinds;
  for (const auto* cell : cells)
    if (cell->skip.empty()) kinds.emplace(kind_name(*cell), Kind{.cell = cell, .trial = {}});
  std::vector<std::pair<std::string, Kind*>> order;  // shuffled, so that running out of time omits kinds at random
  order.reserve(kinds.size());
  for (auto& [name, kind] : kinds) order.emplace_back(text_hash(name), &kind);
  std::sort(order.begin(), order.end());

  CostEstimate total;
  total.kinds = kinds.size();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double rest = budget - since(begin);
    if (rest <= 0) break;
    auto& kind = *order[i].second;
    const double share = std::min(rest, std::max(0.3, 3 * rest / static_cast<double>(order.size() - i)));
    const auto start = Clock::now();
    const Stop stop = [&] { return since(start) > share; };
    run_trial(kind.trial, plan, *kind.cell, tasks, stop);
    kind.tried = true;
    ++total.tried;
  }
  for (auto& [name, kind] : kinds) {
    if (kind.tried) continue;
    std::vector<const Trial*> same_model, same_task, all;
    for (const auto& [other_name, other] : kinds) {
      if (!other.tried) continue;
      all.push_back(&other.trial);
      if (other.cell->axes.at("task") != kind.cell->axes.at("task")) continue;
      same_task.push_back(&other.trial);
      if (other.cell->axes.at("model") == kind.cell->axes.at("model")) same_model.push_back(&other.trial);
    }
    kind.trial = mean_of(!same_model.empty() ? same_model : !same_task.empty() ? same_task : all);
  }

  std::set<CellData> loaded;
  double writing = 0;
  for (const auto* cell : cells) {
    if (!cell->skip.empty()) continue;
    const auto& kind = kinds.at(kind_name(*cell));
    const auto& trial = kind.trial;
    const auto settings = cell->settings.resolved();
    if (loaded.insert(data_of(plan.seed, *cell)).second) total.core_seconds += trial.load;
    // Data of other seeds have the same size.
    const auto work = work_of(*cell, *tasks.get(data_of(plan.seed, *kind.cell)), trial);
    const auto points = static_cast<double>(settings.measure_at.size());
    total.core_seconds += work.seconds;
    total.longest = std::max(total.longest, work.seconds);
    total.at_least |= trial.cut;
    writing += trial.write;
    total.bytes += trial.bytes + trial.checkpoint_bytes * cell->settings.checkpoint +
                   std::max(0.0, points - 1) * trial.point_bytes + bytes_per_log * work.steps / settings.log_every +
                   bytes_per_evaluation * (work.evaluations + 1);
  }
  // Cells are written one at a time, and the longest cell is a lower bound.
  total.seconds = std::max({total.core_seconds / std::max(1, jobs), total.longest, writing});
  return total;
}

std::optional<double> try_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, double budget, const Stop& stop) {
  Trial trial;
  std::shared_ptr<const tasks::Task> task;
  try {
    task = tasks.get(data_of(plan.seed, cell));  // its time does not count
  } catch (const std::exception&) {
    return {};
  }
  const auto start = Clock::now();
  if (!run_trial(trial, plan, cell, tasks, [&] { return stop() || since(start) > budget; }) || trial.cut) return {};
  return work_of(cell, *task, trial).seconds;
}

}  // namespace hardgrad::sweeps
