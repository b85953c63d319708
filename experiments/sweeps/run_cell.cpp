// One cell: train and measure; errors become part of the record.
#include "experiments/sweeps/run_cell.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <exception>
#include <filesystem>

#include "core/support/error.hpp"
#include "core/support/machine.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/sweeps/cell_data.hpp"
#include "experiments/sweeps/checkpoint_writer.hpp"

namespace hardgrad::sweeps {
namespace {

// The cell's state from an earlier run; empty if the file is missing or unusable.
std::optional<storage::PartialCell> earlier(const std::string& path, storage::CellRecord& record) {
  if (path.empty()) return {};
  try {
    if (path_kind(path) == PathKind::missing) return {};
    auto partial = storage::read_partial_cell(path);
    if (partial.record.cell_hash == record.cell_hash) return partial;
    record.log += path + ": is of another cell; started again\n";
  } catch (const InputError& error) {
    record.log += error.what() + std::string("; started again\n");
  }
  return {};
}

// The provenance of the earlier steps, if it differs from this process.
std::string elsewhere(const storage::PartialCell& partial) {
  std::string text;
  for (const auto& [name, value] : storage::provenance())
    if (const auto it = partial.record.provenance.find(name);
        it != partial.record.provenance.end() && it->second != value && name != "created_at" && name != "threads")
      text += fmt::format("{} {} {}", text.empty() ? "" : ",", name, it->second);
  return text.empty() ? "" : fmt::format("up to step {} by{}\n", partial.checkpoint.step, text);
}

// A cell's training, after an optional training of the network to start from.
template <class T>
class CellTraining {
 public:
  CellTraining(const Plan& plan, const Cell& cell, TaskPool& tasks, const CellHooks& hooks, storage::CellRecord& record)
      : cell_(cell),
        hooks_(hooks),
        record_(record),
        keys_(plan.seed, cell.axes),
        settings_(cell.settings.resolved()),
        task_(tasks.get(data_of(plan.seed, cell))) {
    record.log += fmt::format("data: {}\n", task_->provenance());
    if (cell.settings.start_overlap > 0)
      for (const auto& [setting, file] : networks_of(cell.settings))
        record.log += fmt::format("{}: {}\n", setting, seen_by(*trained_task(labels_of(file), file), *task_).text());
  }

  /// The trained network.
  training::Training<T> run() {
    auto training = fresh();
    record_.log += fmt::format("parameters: {}\n", training.model->parameters().size());
    auto partial = earlier(hooks_.partial, record_);
    if (!partial || partial->starting || !resumed(*partial, training)) {
      training = fresh();
      start(training, partial && partial->starting ? &*partial : nullptr);
    }
    record_.result = train_kept(training, settings_, {keys_.init, keys_.order, keys_.noise}, false);
    return training;
  }

 private:
  training::Training<T> fresh() const { return prepared<T>(cell_, task_, {keys_.init, keys_.order, keys_.noise}); }

  bool resumed(const storage::PartialCell& partial, training::Training<T>& training) {
    try {
      storage::resume(partial, training, hooks_.partial);
    } catch (const InputError& error) {
      record_.log += error.what() + std::string("; started again\n");
      return false;
    }
    record_.costs = partial.record.costs;
    record_.log += elsewhere(partial);
    return true;
  }

  training::TrainResult train_kept(training::Training<T>& training, const training::TrainSettings& settings,
                                   const training::RunKeys& keys, bool starting) {
    CheckpointWriter<T> checkpoints(training, settings, cell_.settings, hooks_, record_, began_, starting);
    try {
      return train(training, settings, keys, hooks_.stop, checkpoints.hook());
    } catch (const Interrupted&) {
      checkpoints.save();
      throw;
    }
  }

  /// Replaces the random parameters by the network of train.start.
  void start(training::Training<T>& training, const storage::PartialCell* partial) {
    const auto& from = cell_.settings.start;
    if (from.empty()) return;
    const auto bare = make_model<T>(cell_.spec("model"), task_->dimensions(), keys_.init, false);
    const auto put = [&](const std::vector<storage::NamedArray<double>>& saved, const std::string& where) {
      storage::restore_shared(saved, training.model->parameters(), std::as_const(*bare).parameters(), where);
    };
    if (is_checkpoint(from)) return put(storage::load_checkpoint(from).parameters, from);
    const auto how = training_alone(settings_, cell_.settings.start_steps);
    const training::RunKeys keys{keys_.init, keys_.order / "start", keys_.init / "start"};  // shared by all estimators
    const auto make = [&] { return prepare<T>(task_, cell_.spec("model"), Spec::parse(from), how, keys); };
    auto first = make();
    if (partial && !resumed(*partial, first)) first = make();
    const auto result = train_kept(first, how, keys, true);
    put(storage::save_parameters(std::as_const(*first.model).parameters()), from);
    record_.costs["start_rows"] = result.rows;
    record_.costs["start_attention_values"] = result.attention_values;
    record_.costs["start_cpu_seconds"] = result.log.empty() ? 0 : result.log.back().cpu_seconds;
  }

  const double began_ = thread_seconds();
  const Cell& cell_;
  const CellHooks& hooks_;
  storage::CellRecord& record_;
  const CellKeys keys_;
  const training::TrainSettings settings_;
  const std::shared_ptr<const tasks::Task> task_;
};

template <class T>
void train_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, const CellHooks& hooks, storage::CellRecord& record) {
  const auto training = CellTraining<T>(plan, cell, tasks, hooks, record).run();
  if (!cell.settings.checkpoint) return;
  auto saved = storage::checkpoint_of(training);
  saved.task = cell.axes.at("task");
  saved.model = cell.axes.at("model");
  saved.estimator = cell.axes.at("estimator");
  const auto data = data_of(plan.seed, cell);
  saved.seed = data.seed;
  saved.data_hash = training.task->data_hash();
  if (!data.like.empty()) saved.words = labels_of(data.like).words_origin();
  saved.precision = plan.precision;
  storage::save_checkpoint(hooks.checkpoint, saved);
  record.checkpoint = std::filesystem::path(hooks.checkpoint).filename();
  record.checkpoint_hash = storage::read_seal(hooks.checkpoint).hash;
}

}  // namespace

template <class T>
training::Training<T> prepared(const Cell& cell, const std::shared_ptr<const tasks::Task>& task,
                               const training::RunKeys& keys) {
  std::shared_ptr<Model<T>> reference;
  if (const auto& file = cell.settings.reference; !file.empty()) {
    reference = tasks::make_model_for<T>(*task, cell.spec("model"), keys.init, false);
    if (reference->structure().reference)
      throw UsageError(
          fmt::format("train.reference = \"{}\": {} has a reference policy of its own: take its settings without one", file,
                      cell.axes.at("model")));
    storage::restore_shared(storage::load_checkpoint(file).parameters, reference->parameters(),
                            std::as_const(*reference).parameters(), file);
  }
  return training::prepare<T>(task, cell.spec("model"), cell.spec("estimator"), cell.settings.resolved(), keys,
                              std::move(reference));
}
template training::Training<float> prepared(const Cell&, const std::shared_ptr<const tasks::Task>&, const training::RunKeys&);
template training::Training<double> prepared(const Cell&, const std::shared_ptr<const tasks::Task>&, const training::RunKeys&);

training::TrainSettings training_alone(training::TrainSettings settings, int steps) {
  settings.steps = steps;
  settings.rows = settings.attention_values = settings.cpu_seconds = 0;
  settings.target_loss = training::TrainSettings{}.target_loss;
  settings.anneal.clear();
  settings.reuse = 1;
  settings.patience = settings.evaluate_every = 0;
  settings.evaluate_examples = 1;  // its result is not kept
  settings.decode = settings.keep_best = false;
  settings.measure_at.clear();
  return settings;
}

storage::CellRecord labelled_record(const Plan& plan, const Cell& cell) {
  storage::CellRecord record;
  record.axes = cell.axes;
  record.task_settings = settings_json("task", cell.axes.at("task"));
  record.model_settings = settings_json("model", cell.axes.at("model"));
  record.estimator_settings = settings_json("estimator", cell.axes.at("estimator"));
  record.target_settings = settings_json("target", cell.axes.at("estimator"));
  record.run_settings = settings_json(cell.settings);
  record.data_hash = cell.data_hash;
  record.plan_hash = plan.hash;
  record.cell_hash = cell.hash;
  record.precision = plan.precision;
  record.identity = identity(plan.precision, plan.seed, cell);
  record.configuration = plan.config;
  return record;
}

storage::CellRecord run_cell(const Plan& plan, const Cell& cell, TaskPool& tasks, const CellHooks& hooks) {
  auto record = labelled_record(plan, cell);
  record.costs["cpu_seconds"] = 0;
  const double start = thread_seconds();
  const auto fail = [&](const std::string& reason) {
    record.status = storage::CellStatus::failed;
    record.reason = reason;
    record.log += "failed: " + reason + "\n";
  };
  if (!cell.skip.empty()) {
    record.status = storage::CellStatus::skipped;
    record.reason = cell.skip;
    record.costs.clear();
    return record;
  }
  try {
    if (plan.precision == Precision::float64)
      train_cell<double>(plan, cell, tasks, hooks, record);
    else
      train_cell<float>(plan, cell, tasks, hooks, record);
  } catch (const Interrupted&) {
    throw;
  } catch (const training::Unsupported& e) {
    record.status = storage::CellStatus::skipped;
    record.reason = e.what();
  } catch (const std::bad_alloc&) {
    fail("out of memory; try fewer --jobs or a smaller batch");
  } catch (const std::exception& e) {
    fail(e.what());
  }
  record.costs["tape_bytes"] = record.result.tape_bytes;
  record.costs["missed_hints"] = record.result.missed_hints;
  record.costs["cpu_seconds"] += thread_seconds() - start;
  return record;
}

}  // namespace hardgrad::sweeps
