#include "experiments/training/batch_gradient.hpp"

#include <algorithm>
#include <numeric>

#include "core/support/machine.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/training/adaptation.hpp"

namespace hardgrad::training {
namespace {

template <class T>
using Taken = typename BatchGradient<T>::Taken;

template <class T>
Taken<T> taken_by(const Estimate<T>& estimate, const Tape<T>& tape) {
  return {.loss = estimate.loss,
          .cost = measurement::cost_of(estimate, tape),
          .tape_bytes = static_cast<double>(tape.arena().used())};
}

template <class T>
Estimate<T> drawn(Tape<T>& tape, const Training<T>& training, const Batch& batch, Key noise, std::vector<T>& gradient) {
  tape.clear();
  KeyedRandomness random(noise);
  auto estimate =
      training.estimator->draw({.tape = tape, .model = *training.model, .batch = batch, .random = random, .learning = true});
  differentiate(estimate.surrogate, training.model->parameters(), gradient);
  return estimate;
}

/// into = sum_i weights[i] of_part[i]. The pieces, which round alike, do not depend on the threads.
template <class T>
void add_weighted(const std::vector<std::vector<T>>& of_part, const std::vector<T>& weights, std::vector<T>& into) {
  constexpr std::size_t piece = 1 << 15;
  parallel_for(static_cast<int>((into.size() + piece - 1) / piece), [&](int number) {
    const std::size_t first = number * piece, count = std::min(piece, into.size() - first);
    T* const sum = into.data() + first;
    std::transform(of_part[0].data() + first, of_part[0].data() + first + count, sum, [w = weights[0]](T g) { return w * g; });
    for (std::size_t part = 1; part < weights.size(); ++part) {
      const T* const g = of_part[part].data() + first;
      for (std::size_t i = 0; i < count; ++i) sum[i] += weights[part] * g[i];
    }
  });
}

}  // namespace

template <class T>
std::vector<std::vector<int>> independent_parts(const Estimator<T>& estimator, const Model<T>& model, int examples, int most) {
  const bool joined = learns(estimator) || estimator.couples_examples() || *model.structure().joins;
  const int count = joined ? 1 : std::clamp(most, 1, examples);
  std::vector<std::vector<int>> parts(count);
  for (int i = 0, next = 0; i < count; ++i) {
    parts[i].resize(examples / count + (i < examples % count));
    std::iota(parts[i].begin(), parts[i].end(), next);
    next += static_cast<int>(parts[i].size());
  }
  return parts;
}

template <class T>
Tape<T>& BatchGradient<T>::tape(std::size_t lane) {
  while (tapes_.size() <= lane) tapes_.push_back(std::make_unique<Tape<T>>(pause_));
  return *tapes_[lane];
}

template <class T>
auto BatchGradient<T>::take(Training<T>& training, const Batch& batch, Key noise, std::vector<T>& into) -> Taken {
  const auto parts = independent_parts(*training.estimator, *training.model, batch.examples(), parts_);
  if (parts.size() > 1) return take_divided(training, batch, noise, parts, into);
  const auto estimate = drawn(tape(0), training, batch, noise, into);
  learn_from(estimate, *training.estimator, *training.own_optimizer, own_gradient_);
  return taken_by(estimate, tape(0));
}

template <class T>
auto BatchGradient<T>::take_divided(Training<T>& training, const Batch& batch, Key noise,
                                    const std::vector<std::vector<int>>& parts, std::vector<T>& into) -> Taken {
  const int count = static_cast<int>(parts.size()), lanes = threads_ > 0 ? threads_ : count;
  for (int lane = std::min(lanes, count); lane-- > 0;) tape(lane);
  gradients_.resize(count);
  std::vector<Taken> taken(count);
  const double start = thread_seconds();
  parallel_in_order(
      count,
      [&](int lane, int part) {
        const double began = thread_seconds();
        gradients_[part].resize(into.size());
        taken[part] = taken_by(drawn(tape(lane), training, batch.select(parts[part]), noise, gradients_[part]), tape(lane));
        taken[part].seconds_elsewhere = thread_seconds() - began;
      },
      lanes);
  Taken all{.seconds_elsewhere = start - thread_seconds()};
  std::vector<T> weights;
  for (int part = 0; part < count; ++part) {
    const double share = static_cast<double>(parts[part].size()) / batch.examples();
    weights.push_back(static_cast<T>(share));
    all.loss += share * taken[part].loss;
    all.cost.add(taken[part].cost);
    all.tape_bytes += taken[part].tape_bytes;
    all.seconds_elsewhere += taken[part].seconds_elsewhere;
  }
  add_weighted(gradients_, weights, into);
  return all;
}

#define HARDGRAD_INSTANTIATE(T)                                                                             \
  template std::vector<std::vector<int>> independent_parts(const Estimator<T>&, const Model<T>&, int, int); \
  template class BatchGradient<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad::training
