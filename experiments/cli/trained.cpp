#include "experiments/cli/trained.hpp"

#include <fmt/format.h>

#include <set>

#include "core/support/error.hpp"
#include "experiments/sweeps/config.hpp"
#include "experiments/sweeps/start.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad::cli {

Trained::Trained(TrainedOptions options)
    : checkpoint(storage::load_checkpoint(options.checkpoint)),
      task_spec(checkpoint.task),
      model_spec(checkpoint.model),
      task(sweeps::trained_task(checkpoint, options.checkpoint)),
      options_(std::move(options)),
      trained_dimensions_(task->dimensions()) {
  if (!options_.model.empty()) {
    model_spec = sweeps::canonical_spec("model", options_.model);
    const auto name = Spec::parse(checkpoint.model).name;
    if (Spec::parse(model_spec).name != name)
      throw UsageError(fmt::format("--model {}: the checkpoint is of {}; give other settings of {}", options_.model,
                                   checkpoint.model, name));
  }
  if (options_.task.empty()) return;
  const auto given = Spec::parse(options_.task);
  if (given.name != Spec::parse(checkpoint.task).name)
    throw UsageError(fmt::format("--task {}: the checkpoint was trained on {}; name other data of the same task", given.text,
                                 checkpoint.task));
  task_spec = sweeps::canonical_spec("task", options_.task);
  const std::shared_ptr<const tasks::Task> trained = task;
  task = tasks::make_task(Spec::parse(task_spec), Key(options_.seed.value_or(checkpoint.seed)) / "data", trained.get());
  if (!tasks::Tasks::instance().at(given.name).make_for)
    training::require_same_words(*trained, *task, options_.read, "--task " + task_spec);
}

template <class T>
std::unique_ptr<Model<T>> Trained::model(bool posterior) const {
  const auto make = [&](bool with) {
    return tasks::make_model_for<T>(*task, Spec::parse(model_spec), Key(checkpoint.seed) / "init", with);
  };
  const auto fits = [&](const Model<T>& model) {
    std::set<std::string> have, saved;
    for (const auto& p : model.parameters()) have.insert(p.name);
    for (const auto& p : checkpoint.parameters) saved.insert(p.name);
    return have == saved;
  };
  try {
    auto model = make(posterior);
    if (!fits(*model))
      if (auto other = make(!posterior); fits(*other)) model = std::move(other);
    storage::restore_parameters(checkpoint.parameters, model->parameters(), options_.checkpoint);
    return model;
  } catch (const InputError& error) {
    std::string differ;
    for (const auto& [name, size] : task->dimensions())
      if (const auto it = trained_dimensions_.find(name); it != trained_dimensions_.end() && it->second != size)
        differ += fmt::format("{}{} {} ({} in training)", differ.empty() ? "" : ", ", name, size, it->second);
    if (!differ.empty())
      throw InputError(fmt::format("{}: its network does not fit {}: {}", options_.checkpoint, task_spec, differ));
    if (options_.model.empty()) throw;
    throw InputError(
        fmt::format("{} (--model may only change settings that leave the parameters unchanged; it was trained as {})",
                    error.what(), checkpoint.model));
  }
}

template std::unique_ptr<Model<float>> Trained::model(bool) const;
template std::unique_ptr<Model<double>> Trained::model(bool) const;

}  // namespace hardgrad::cli
