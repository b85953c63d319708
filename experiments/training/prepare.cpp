// Creates a training before its first step.
#include "core/estimator/older_samples.hpp"
#include "experiments/training/adaptation.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::training {

std::string why_untrainable(const Spec& estimator, const Structure& structure, const TrainSettings& settings) {
  if (auto reason = why_unsupported(estimator, structure); !reason.empty() || settings.reuse == 1) return reason;
  if (!corrects_behaviour(estimator)) return does_not_correct(estimator.text) + ", or train.reuse = 1";
  return structure.behaviour ? "the network has a behaviour policy of its own: take one without, or train.reuse = 1" : "";
}

template <class T>
// NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved, which clang-tidy does not see in a template
Training<T> prepare(std::shared_ptr<const tasks::Task> task, const Spec& model, const Spec& estimator,
                    const TrainSettings& settings, const RunKeys& keys, std::shared_ptr<const Model<T>> reference) {
  Training<T> training;
  training.task = std::move(task);
  training.estimator_spec = estimator;
  const bool posterior = wants_posterior(estimator);
  training.model = tasks::make_model_for<T>(*training.task, model, keys.init, posterior);
  training.model->set_policies({.reference = std::move(reference)});
  if (auto reason = why_untrainable(estimator, training.model->structure_with_policies(), settings); !reason.empty())
    throw Unsupported(reason);
  if (settings.reuse > 1) training.older = tasks::make_model_for<T>(*training.task, model, keys.init, posterior);
  training.estimator = make_estimator<T>(estimator, training.model->structure_with_policies(), keys.init / "estimator");
  auto how = settings.optimizer;
  how.total_steps = settings.steps;
  how.noise = keys.init / "gradient noise";
  const auto& parameters = training.model->parameters();
  auto apart = how;  // the same schedule
  apart.rule = settings.param_group_optimizer;
  apart.learning_rate = settings.param_group_learning_rate;
  training.optimizer = settings.param_group.empty() ? make_optimizer<T>(how, parameters.size())
                                                    : make_optimizer<T>(how, apart, settings.param_group, parameters);
  training.own_optimizer = own_optimizer(*training.estimator, settings.own_learning_rate, how);
  return training;
}

template Training<float> prepare(std::shared_ptr<const tasks::Task>, const Spec&, const Spec&, const TrainSettings&,
                                 const RunKeys&, std::shared_ptr<const Model<float>>);
template Training<double> prepare(std::shared_ptr<const tasks::Task>, const Spec&, const Spec&, const TrainSettings&,
                                  const RunKeys&, std::shared_ptr<const Model<double>>);

}  // namespace hardgrad::training
