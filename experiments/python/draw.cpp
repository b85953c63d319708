#include "experiments/python/draw.hpp"

#include <mutex>

#include "experiments/measurement/finite.hpp"
#include "experiments/training/adaptation.hpp"

namespace hardgrad::python {

template <class T>
Drawn<T> draw(HeldEstimator& estimator, const GivenLogits<T>& logits, const std::vector<T>& state,
              std::vector<std::uint32_t> ids, const typename OwnLoss<T>::Loss& loss, std::uint64_t seed, bool learning,
              bool options) {
  std::vector<Answered<T>> answered;
  const OwnLoss<T> model(logits, state, loss, &answered);
  const auto held = estimator.on<T>(model.structure());
  learning = learning && held->optimizer;
  std::unique_lock lock(estimator.learning(), std::defer_lock);
  if (held->optimizer) lock.lock();  // who learns is not read meanwhile

  Tape<T> tape;
  KeyedRandomness random(Key(seed) / "noise");
  const auto batch = model.batch(std::move(ids));
  const auto estimate =
      held->estimator->draw({.tape = tape, .model = model, .batch = batch, .random = random, .learning = learning});
  tape.backward(estimate.surrogate);

  // Estimates are of the mean over the examples.
  const auto examples = static_cast<T>(logits.examples);
  Drawn<T> drawn{std::vector<T>(model.parameters().size()), {}};
  tape.add_gradient(model.parameters(), std::span(drawn.gradient), examples);
  for (const auto g : drawn.gradient) require_finite(g, "an entry of the gradient at the logits");
  for (auto& run : answered) {
    auto& samples = drawn.runs.emplace_back();
    const auto f = run.loss.value(), slope = tape.gradient(run.loss);
    samples.loss.assign(f.data, f.data + f.size());
    for (std::size_t r = 0; r < f.size(); ++r) samples.share.push_back(examples * slope.data[r]);
    samples.example = std::move(run.example);
    if (!options) continue;
    if (run.choice.hard()) {
      samples.option = std::move(run.choice.option);
    } else {
      const auto w = run.choice.weights.value();
      samples.weights.assign(w.data, w.data + w.size());
    }
  }
  if (learning) learn_from(estimate, *held->estimator, *held->optimizer, held->gradient);
  return drawn;
}

template Drawn<float> draw(HeldEstimator&, const GivenLogits<float>&, const std::vector<float>&, std::vector<std::uint32_t>,
                           const OwnLoss<float>::Loss&, std::uint64_t, bool, bool);
template Drawn<double> draw(HeldEstimator&, const GivenLogits<double>&, const std::vector<double>&, std::vector<std::uint32_t>,
                            const OwnLoss<double>::Loss&, std::uint64_t, bool, bool);

}  // namespace hardgrad::python
