#include "experiments/training/adaptation.hpp"

#include "core/autodiff/tape.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/training/schedule.hpp"

namespace hardgrad::training {

template <class T>
void learn_from(const Estimate<T>& estimate, Estimator<T>& estimator, Optimizer<T>& optimizer, std::vector<T>& gradient) {
  if (estimate.own_loss) {
    gradient.resize(estimator.own_parameters().size());
    differentiate(estimate.own_loss, estimator.own_parameters(), gradient);
    optimizer.step(estimator.own_parameters(), gradient);
  }
  estimator.learn(estimate);
}

template <class T>
std::unique_ptr<Estimator<T>> copied(const Spec& spec, const Estimator<T>& estimator, const Structure& structure) {
  auto copy = make_estimator<T>(spec, structure, Key(0));
  auto from = estimator.own_parameters().begin();
  for (auto& parameter : copy->own_parameters()) parameter.value.storage() = (from++)->value.storage();
  copy->restore(estimator.state());
  return copy;
}

template <class T>
void adapt(Estimator<T>& estimator, const Model<T>& model, const tasks::Task& task, const AdaptSettings& settings, Key key,
           const Stop& stop) {
  if (settings.steps == 0 || !learns(estimator)) return;
  const auto optimizer = own_optimizer(estimator, settings.learning_rate, {.total_steps = settings.steps});
  Batches batches(task, settings.batch, key / "order");
  Tape<T> tape(polling(stop));
  std::vector<T> gradient;
  for (int step = 0; step < settings.steps; ++step) {
    poll(stop);
    const auto batch = batches.at(step);
    KeyedRandomness random(key / "noise" / static_cast<std::uint64_t>(step));
    tape.clear();
    const auto estimate = estimator.draw({tape, model, batch, random, true});
    measurement::require_finite(estimate.loss, "the loss");
    learn_from(estimate, estimator, *optimizer, gradient);
  }
}

#define HARDGRAD_INSTANTIATE(T)                                                                      \
  template void learn_from(const Estimate<T>&, Estimator<T>&, Optimizer<T>&, std::vector<T>&);       \
  template std::unique_ptr<Estimator<T>> copied(const Spec&, const Estimator<T>&, const Structure&); \
  template void adapt(Estimator<T>&, const Model<T>&, const tasks::Task&, const AdaptSettings&, Key, const Stop&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad::training
