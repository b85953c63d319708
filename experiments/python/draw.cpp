#include "experiments/python/draw.hpp"

#include <mutex>

#include "experiments/measurement/finite.hpp"
#include "experiments/python/policies.hpp"

namespace hardgrad::python {

template <class T>
Drawn<T>::Drawn(StatefulEstimator& estimator, Wanted<T> wanted)
    : model_(std::move(wanted.logits), std::move(wanted.state), std::move(wanted.loss), &answered_),
      gradient_(model_.parameters().size()) {
  const auto in_use = estimator.on<T>(model_.structure());
  const bool learning = wanted.learning && in_use->learns;
  std::unique_lock lock(estimator.learning(), std::defer_lock);
  if (in_use->learns) lock.lock();  // no other thread reads an estimator that learns

  if (in_use->estimator->target().entry().rewards) model_.take_rewards();
  const auto batch = model_.batch(std::move(wanted.ids));
  const auto random = estimator.uncorrected(model_.structure()) ? std::make_unique<NoDraws>(estimator.text())
                                                                : noise_of(wanted.seed, batch, wanted.mixture);
  const auto estimate =
      in_use->estimator->draw({.tape = *tape_, .model = model_, .batch = batch, .random = *random, .learning = learning});
  if (wanted.ending) wanted.ending();
  tape_->backward(estimate.surrogate);
  tape_->add_gradient(model_.parameters(), std::span(gradient_), model_.examples());  // estimates are of the batch mean
  for (const auto g : gradient_) measurement::require_finite(g, "an entry of the gradient at the logits");
  if (model_.structure().behaviour) ratios_.add(*estimate.episode, 1);
  note(wanted.options);
  if (!learning) return;
  in_use->learn(estimate);
  if (!in_use->optimizer) own_gradient_ = in_use->gradient;
}

template <class T>
void Drawn<T>::note(bool options) {
  for (const auto& run : answered_) {
    auto& samples = runs_.emplace_back();
    const auto f = run.loss.value(), slope = tape_->gradient(run.loss);
    samples.loss.assign(f.data, f.data + f.size());
    for (std::size_t r = 0; r < f.size(); ++r) samples.share.push_back(model_.examples() * slope.data[r]);
    samples.example = run.example;
    if (!options) continue;
    samples.ratio = run.ratios();
    if (run.choice.hard()) {
      samples.option = run.choice.picked();
    } else {
      const auto w = run.choice.weights().value();
      samples.weights.assign(w.data, w.data + w.size());
    }
  }
}

template <class T>
std::vector<T> Drawn<T>::through_weights(std::size_t run, const T* slope) {
  const auto weights = answered_.at(run).choice.weights();
  std::vector<T> gradient(gradient_.size());
  tape_->backward(weights, MatrixView<const T>{slope, weights.rows(), weights.cols()});
  tape_->add_gradient(model_.parameters(), std::span(gradient));
  for (const auto g : gradient) measurement::require_finite(g, "an entry of the gradient at the logits");
  return gradient;
}

template class Drawn<float>;
template class Drawn<double>;

}  // namespace hardgrad::python
