#include "experiments/cli/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/support/error.hpp"
#include "experiments/cli/candidates.hpp"
#include "experiments/sweeps/cell_data.hpp"
#include "experiments/sweeps/config.hpp"
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
  const auto spec = Spec::parse(options_.task);
  if (spec.name != Spec::parse(checkpoint.task).name)
    throw UsageError(fmt::format("--task {}: the checkpoint was trained on {}; name other data of the same task", spec.text,
                                 checkpoint.task));
  task_spec = sweeps::canonical_spec("task", options_.task);
  const std::shared_ptr<const tasks::Task> trained = task;
  task = tasks::make_task(Spec::parse(task_spec), Key(options_.seed.value_or(checkpoint.seed)) / "data", trained.get());
  if (!tasks::Tasks::instance().at(spec.name).make_for)
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

void SceneOptions::add(Verb& verb) {
  verb.add("--task", task, "task, e.g. bits or 'translation[examples=1000]'").completed_by(task_specs);
  verb.add("--model", model, "network; by default the task's own").completed_by(model_specs);
  verb.add("--seed", seed, "seed of data, parameters and noise (with --checkpoint: of the noise)")
      .not_negative()
      .shows_default();
  verb.add("--batch", batch, "examples: the first of the training split").from_to(1, 1000000).shows_default();
  verb.add("--precision", precision, precisions, "float or double");
  verb.add("--checkpoint", checkpoint,
           "parameters from a checkpoint, with its task and model, or with other matching data and settings");
  verb.add("--older", older,
           "checkpoint of the same network: the behaviour policy, which draws the samples of policy_gradient");
  verb.add("--reference", reference, "checkpoint of the same network: the reference policy of target=near_reference");
}

std::string SceneOptions::files() const {
  std::string text;
  for (const auto& [option, file] : {std::pair{"--checkpoint", &checkpoint}, {"--older", &older}, {"--reference", &reference}})
    if (!file->empty()) text += fmt::format(" {} {}", option, *file);
  return text;
}

bool wants_posterior(const std::vector<std::string>& estimators) {
  return std::any_of(estimators.begin(), estimators.end(),
                     [](const auto& text) { return hardgrad::wants_posterior(Spec::parse(text)); });
}

namespace {

/// The scene's network with the parameters of a checkpoint; null if none is given. UsageError if it has such a policy of its
/// own.
template <class T>
std::shared_ptr<const Model<T>> other_policy(const std::string& option, const std::string& file, bool has_own,
                                             const Scene<T>& scene, const SceneOptions& place, bool posterior) {
  if (file.empty()) return nullptr;
  if (has_own)
    throw UsageError(
        fmt::format("{}: {} has such a policy of its own: take its settings without one", option, scene.model_spec));
  try {
    return Trained({.checkpoint = file,
                    .task = scene.task_spec,
                    .model = scene.model_spec,
                    .seed = scene.data_seed,
                    .read = {.split = tasks::Split::train, .examples = place.batch}})
        .template model<T>(posterior);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{} {}: {}", option, file, error.what()));
  }
}

}  // namespace

template <class T>
Scene<T> open_scene(const SceneOptions& place, bool posterior) {
  Scene<T> scene;
  scene.data_seed = place.seed;
  if (!place.checkpoint.empty()) {
    const Trained trained({.checkpoint = place.checkpoint,
                           .task = place.task,
                           .model = place.model,
                           .read = {.split = tasks::Split::train, .examples = place.batch}});
    scene.task_spec = trained.task_spec;
    scene.model_spec = trained.model_spec;
    scene.task = trained.task;
    scene.model = trained.model<T>(posterior);
    scene.checkpoint = trained.checkpoint;
    scene.data_seed = trained.checkpoint.seed;
  } else {
    if (place.task.empty()) throw UsageError("--task is needed, e.g. --task bits; `hardgrad list tasks` names them");
    scene.task_spec = sweeps::canonical_spec("task", place.task);
    scene.model_spec = sweeps::canonical_spec(
        "model", place.model.empty() ? tasks::Tasks::instance().at(Spec::parse(place.task).name).default_model : place.model);
    scene.task = tasks::make_task(Spec::parse(scene.task_spec), Key(scene.data_seed) / "data");
    scene.model =
        tasks::make_model_for<T>(*scene.task, Spec::parse(scene.model_spec), Key(scene.data_seed) / "init", posterior);
  }
  const auto& own = scene.model->structure();
  scene.model->set_policies(
      {.behaviour = other_policy("--older", place.older, own.behaviour, scene, place, posterior),
       .reference = other_policy("--reference", place.reference, own.reference, scene, place, posterior)});
  std::vector<int> first(std::min<std::size_t>(static_cast<std::size_t>(place.batch), scene.task->size(tasks::Split::train)));
  std::iota(first.begin(), first.end(), 0);
  scene.batch = scene.task->batch(tasks::Split::train, first);
  return scene;
}

template <class T>
std::unique_ptr<Estimator<T>> open_estimator(const Scene<T>& scene, const Spec& spec, Key init) {
  auto estimator = make_estimator<T>(spec, scene.model->structure_with_policies(), init);
  if (scene.checkpoint &&
      sweeps::canonical_spec("estimator", spec.text) == sweeps::canonical_spec("estimator", scene.checkpoint->estimator)) {
    storage::restore_parameters(scene.checkpoint->own_parameters, estimator->own_parameters(), "the checkpoint's estimator");
    if (!scene.checkpoint->estimator_state.empty()) estimator->restore(scene.checkpoint->estimator_state);
  }
  return estimator;
}

template Scene<float> open_scene(const SceneOptions&, bool);
template Scene<double> open_scene(const SceneOptions&, bool);
template std::unique_ptr<Estimator<float>> open_estimator(const Scene<float>&, const Spec&, Key);
template std::unique_ptr<Estimator<double>> open_estimator(const Scene<double>&, const Spec&, Key);

}  // namespace hardgrad::cli
