#include "experiments/python/draw.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "core/support/error.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/python/policies.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/training/batch_gradient.hpp"

namespace hardgrad::python {
namespace {

// The parts depend on the batch alone, so that the numbers are the same for any number of threads.
constexpr std::size_t logits_of_part = 8192, most_parts = 8;

std::unique_ptr<Randomness> noise_for(StatefulEstimator& estimator, const Structure& structure, std::uint64_t seed,
                                      const Batch& batch, Mixture* mixture) {
  if (estimator.uncorrected(structure)) return std::make_unique<NoDraws>(estimator.text());
  return noise_of(seed, batch, mixture);
}

}  // namespace

template <class T>
Estimate<T> DrawnPart<T>::draw(const Estimator<T>& estimator, Randomness& random, bool learning,
                               const std::function<void()>& ending, std::span<T> into) {
  const auto batch = this->batch();
  auto estimate = estimator.draw({.tape = **tape_, .model = model_, .batch = batch, .random = random, .learning = learning});
  if (ending) ending();
  (*tape_)->backward(estimate.surrogate);
  (*tape_)->add_gradient(model_.parameters(), into, model_.examples());  // estimates are of the batch mean
  return estimate;
}

template <class T>
void DrawnPart<T>::note(std::vector<Samples<T>>& runs, int first, bool options) {
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (std::size_t i = 0; i < answered_.size(); ++i) {
    const auto& run = answered_[i];
    if (runs.size() == i) runs.emplace_back();
    auto& samples = runs[i];
    const auto f = run.loss.value(), slope = (*tape_)->gradient(run.loss);
    append(samples.loss, std::span(f.data, f.size()));
    for (std::size_t r = 0; r < f.size(); ++r) samples.share.push_back(model_.examples() * slope.data[r]);
    for (const int e : run.example) samples.example.push_back(first + e);
    if (!options) continue;
    append(samples.ratio, run.ratios());
    if (run.choice.hard()) {
      append(samples.option, run.choice.picked());
    } else {
      const auto w = run.choice.weights().value();
      append(samples.weights, std::span(w.data, w.size()));
    }
  }
}

template <class T>
void DrawnPart<T>::through_weights(std::size_t run, const T* slope, std::span<T> into) {
  const auto weights = answered_.at(run).choice.weights();
  (*tape_)->backward(weights, MatrixView<const T>{slope, weights.rows(), weights.cols()});
  (*tape_)->add_gradient(model_.parameters(), into);
}

template <class T>
Drawn<T>::Drawn(StatefulEstimator& estimator, Wanted<T> wanted)
    : threads_(wanted.threads), cells_(wanted.logits.columns * wanted.logits.options), gradient_(wanted.logits.value.size()) {
  if (!draw_parts(estimator, wanted)) draw_whole(estimator, std::move(wanted));
}

template <class T>
void Drawn<T>::draw_whole(StatefulEstimator& estimator, Wanted<T> wanted) {
  parts_.push_back(std::make_unique<DrawnPart<T>>(std::move(wanted.logits), std::move(wanted.state), std::move(wanted.ids),
                                                  std::move(wanted.loss)));
  auto& part = *parts_[0];
  const auto& structure = part.model().structure();
  const auto in_use = estimator.on<T>(structure);
  const bool learning = wanted.learning && in_use->learns;
  std::unique_lock lock(estimator.learning(), std::defer_lock);
  if (in_use->learns) lock.lock();  // no other thread reads an estimator that learns

  if (in_use->estimator->target().entry().rewards) part.model().take_rewards();
  const auto random = noise_for(estimator, structure, wanted.seed, part.batch(), wanted.mixture);
  part.take_tape();
  const auto estimate = part.draw(*in_use->estimator, *random, learning, wanted.ending, gradient_);
  if (structure.behaviour) ratios_.add(*estimate.episode, 1);
  note(wanted.options);
  if (!learning) return;
  in_use->learn(estimate);
  if (!in_use->optimizer) own_gradient_ = in_use->gradient;
}

template <class T>
bool Drawn<T>::draw_parts(StatefulEstimator& estimator, const Wanted<T>& wanted) {
  const auto& whole = wanted.logits;
  const auto most = static_cast<int>(std::min({gradient_.size() / logits_of_part, most_parts, whole.examples}));
  if (most < 2 || !wanted.called || wanted.mixture || estimator.written()) return false;
  const auto some = [&](const auto& of_examples, std::size_t first, std::size_t count) {
    const std::size_t width = of_examples.size() / whole.examples;
    const auto begin = of_examples.begin() + static_cast<std::ptrdiff_t>(first * width);
    return std::vector(begin, begin + static_cast<std::ptrdiff_t>(count * width));
  };
  const OwnLoss<T> model(whole.of_examples(0, 1), some(wanted.state, 0, 1), {});
  const auto in_use = estimator.on<T>(model.structure());
  const auto positions = training::independent_parts(*in_use->estimator, model, static_cast<int>(whole.examples), most);
  if (positions.size() < 2) return false;

  std::vector<int> first;
  for (const auto& part : positions) first.push_back(part.front());
  JoinedLoss<T> joined(*wanted.called, first, in_use->estimator->target().entry().rewards);
  auto ids = wanted.ids;
  for (std::uint32_t e = 0; ids.size() < whole.examples; ++e) ids.push_back(e);
  const std::size_t count = first.size();
  std::vector<std::unique_ptr<DrawnPart<T>>> parts;
  std::vector<measurement::Ratios> ratios(count);
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::unique_ptr<Fiber>> fibers;  // left before the parts that they draw
  for (std::size_t p = 0; p < count; ++p) {
    const std::size_t begin = first[p], examples = positions[p].size();
    const auto ask = [&, p](Tape<T>& tape, const Choice<T>& choice, std::span<const int> example) {
      return joined.ask(p, *fibers[p], tape, choice, example);
    };
    parts.push_back(std::make_unique<DrawnPart<T>>(whole.of_examples(begin, examples), some(wanted.state, begin, examples),
                                                   some(ids, begin, examples), ask));
    parts[p]->take_tape();
    fibers.push_back(std::make_unique<Fiber>(
        [&, p, begin, examples](Fiber&) {
          const auto& structure = parts[p]->model().structure();
          const auto random = noise_for(estimator, structure, wanted.seed, parts[p]->batch(), nullptr);
          const auto ending = [&] {
            if (wanted.ending) joined.cut(p);
          };
          const auto into = std::span(gradient_).subspan(begin * cells_, examples * cells_);
          const auto estimate = parts[p]->draw(*in_use->estimator, *random, false, ending, into);
          if (structure.behaviour) ratios[p].add(*estimate.episode, 1);
        },
        Fiber::Threads::several));
  }
  const double cap = estimator.cap(),
               columns_of_cap = std::max(1.0, static_cast<double>(whole.columns) / 100);  // require_changes
  do {
    each_part(count, [&](std::size_t p) {
      try {
        if (!fibers[p]->ended() && !joined.asks(p)) fibers[p]->resume();
      } catch (...) {
        errors[p] = std::current_exception();
      }
    });
    const auto error = std::find_if(errors.begin(), errors.end(), [](const auto& e) { return e != nullptr; });
    const bool large = static_cast<double>(joined.rows_asked()) * columns_of_cap > cap;
    if (joined.calls() == 0 && (error != errors.end() || large)) {  // the error is that of the whole batch
      std::fill(gradient_.begin(), gradient_.end(), T{0});
      return false;
    }
    if (error != errors.end()) std::rethrow_exception(*error);
  } while (joined.answer());
  parts_ = std::move(parts);
  first_ = std::move(first);
  for (const auto& each : ratios) ratios_.join(each);
  note(wanted.options);
  return true;
}

template <class T>
void Drawn<T>::note(bool options) {
  for (const auto g : gradient_) measurement::require_finite(g, "an entry of the gradient at the logits");
  for (std::size_t p = 0; p < parts_.size(); ++p) parts_[p]->note(runs_, first_[p], options);
}

template <class T>
template <class F>
void Drawn<T>::each_part(std::size_t count, F f) const {
  const int jobs = count > 1 ? useful_jobs(threads_) : 1;
  if (jobs == 1)
    for (std::size_t p = 0; p < count; ++p) f(p);
  else
    tbb::task_arena(jobs).execute([&] { parallel_for(static_cast<int>(count), f); });
}

template <class T>
std::vector<T> Drawn<T>::through_weights(std::size_t run, const T* slope) {
  std::vector<T> gradient(gradient_.size());
  std::vector<std::size_t> row = {0};  // of each part, its first
  for (const auto& part : parts_) row.push_back(row.back() + part->rows(run));
  if (row.back() == 0) throw Bug("a derivative of choices that were not drawn");
  each_part(parts_.size(), [&](std::size_t p) {
    if (row[p + 1] > row[p])
      parts_[p]->through_weights(
          run, slope + row[p] * cells_,
          std::span(gradient).subspan(first_[p] * cells_, static_cast<std::size_t>(parts_[p]->model().examples()) * cells_));
  });
  for (const auto g : gradient) measurement::require_finite(g, "an entry of the gradient at the logits");
  return gradient;
}

template class DrawnPart<float>;
template class DrawnPart<double>;
template class Drawn<float>;
template class Drawn<double>;

}  // namespace hardgrad::python
