#include "experiments/measurement/draw.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "core/autodiff/tape.hpp"
#include "experiments/measurement/at_logits.hpp"
#include "experiments/measurement/defensive_mixture.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/support/parallel.hpp"

namespace hardgrad::measurement {
namespace {

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void add(Cost& to, const Cost& cost, double share) {
  to.estimate.add(cost.estimate, share);
  to.seconds += share * cost.seconds;
}

/// Most examples, or bytes of tape, of a run that holds several replicates: overhead dominates short runs, and long runs leave
/// the cache.
constexpr int tall = 256;
constexpr double roomy = 8e6;

}  // namespace

Cost mixed(const Cost& one, const Cost& other, double share) {
  Cost cost;
  cost.ratios.join(one.ratios);
  cost.ratios.join(other.ratios);
  add(cost, one, share);
  add(cost, other, 1 - share);
  return cost;
}

template <class T>
MixturePlan mixture_plan(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Key noise,
                         std::shared_ptr<const PathLaws> paths) {
  constexpr std::uint64_t runs = 16;
  const bool off_policy = model.structure_with_policies().behaviour;
  MixturePlan most{.paths = std::move(paths)};
  const auto dominant = std::make_shared<DominantOutcomes>();
  Tape<T> tape;
  for (std::uint64_t i = 0; i < runs; ++i) {
    if (i == runs / 4 && most.empty()) break;
    tape.rewind();
    // From the law first, then flat: there may be more draws after a rare option.
    auto random = i < runs / 4 ? DefensiveMixture::trial(noise / "plan" / i, off_policy)
                               : DefensiveMixture(noise / "plan", 2 * i + 1, most);
    estimator.draw({tape, model, batch, random});
    const auto seen = random.seen();
    most = {std::max(most.examples, seen.examples), std::max(most.draws, seen.draws), std::max(most.samples, seen.samples),
            most.paths};
    dominant->add(random.races());
  }
  dominant->select();
  if (most.draws > 0 && most.samples == 0 && !dominant->empty()) most.dominant = dominant;
  return most;
}

template <class T>
Cost draw(ReplicateSums& replicates, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Key noise,
          const MixturePlan& plan, const Stop& stop, Visited* visited) {
  const int begin = replicates.next();
  const double share = 1.0 / (replicates.count() - replicates.range(begin)[0]);
  std::vector<Cost> costs(replicates.blocks());
  std::vector<double> weights(replicates.blocks());
  std::vector<Tape<T>> tapes(lanes());  // kept warm: they hold the data that all replicates share
  for (auto& tape : tapes) tape.pause_for(polling(stop));
  std::vector<Visited> seen(visited ? lanes() : 0, visited ? *visited : Visited(model, batch));
  parallel_in_order(replicates.blocks() - begin, [&](int lane, int place) {
    auto& tape = tapes[lane];
    const int block = begin + place;
    std::vector<double> gradient(model.parameters().size());
    const auto [first, last] = replicates.range(block);
    for (int m = first; m < last; ++m) {
      poll(stop);
      const Clock clock;
      tape.rewind();
      DefensiveMixture random(noise, static_cast<std::uint64_t>(m), plan);
      const auto estimate = estimator.draw({tape, model, batch, random});
      differentiate(estimate.surrogate, model.parameters(), gradient);
      require_finite(std::span<const double>(gradient), model.parameters());
      require_finite(estimate.loss, "the loss");
      const double weight = random.weight();
      add(costs[block], {cost_of(estimate, tape), clock.seconds()}, share * weight);
      weights[block] += share * weight;
      replicates.add(block, gradient, weight);
      costs[block].ratios.add(*estimate.episode, weight);
      if (!visited) continue;
      seen[lane].add(*estimate.episode);
      for (const auto& other : estimate.others) seen[lane].add(*other);
    }
    replicates.complete(block);
  });
  for (const auto& lane : seen) visited->add(lane);
  Cost each;
  const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const auto& cost : costs) {
    add(each, cost, 1 / whole);
    each.ratios.join(cost.ratios);
  }
  return each;
}

template <class T>
Cost draw_at_logits(ReplicateSums& replicates, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                    Key noise, const MixturePlan& plan, const Stop& stop) {
  std::vector<Tape<T>> tapes(lanes());
  for (auto& tape : tapes) tape.pause_for(polling(stop));
  const bool apart = estimator.couples_examples();  // a run of several replicates would be one batch
  const int begin = replicates.next(), blocks = replicates.blocks();
  const double share = 1.0 / (replicates.count() - replicates.range(begin)[0]);
  const int least = apart ? 1 : std::max(1, tall / batch.examples());
  int together = least;  // replicates in a run
  bool sized = false;
  Cost each;
  // The blocks [first, last), in runs that may hold replicates of several.
  const auto take = [&](Tape<T>& tape, int first, int last, Cost& cost) {
    int block = first;
    const int end = replicates.range(last - 1)[1];
    for (int m = replicates.range(first)[0]; m < end;) {
      poll(stop);
      const Clock clock;
      const auto run = gradients_at_logits(tape, estimator, model, batch, noise, m, std::min(together, end - m), plan);
      add(cost, {run.cost, clock.seconds()}, share);
      for (std::size_t i = 0; i < run.of_replicate.size(); ++i) {
        for (const double g : run.of_replicate[i]) require_finite(g, "an entry of the gradient at the logits");
        replicates.add(block, run.of_replicate[i], run.weights[i]);
        if (++m == replicates.range(block)[1]) replicates.complete(block++);
      }
      if (!sized) {  // the first run shows the size of a replicate
        sized = true;
        each.sites = run.sites;
        if (!apart)
          together = std::max(together, static_cast<int>(roomy * static_cast<double>(run.of_replicate.size()) /
                                                         static_cast<double>(tape.arena().used())));
      }
    }
  };
  take(tapes[0], begin, begin + 1, each);
  // A thread draws and adds as many blocks as fill a run, or fewer so that there are eight parts. The parts do not depend on the
  // number of threads, because rounding may depend on the size of a run.
  const int rest = blocks - begin - 1, length = std::max(1, replicates.count() / blocks);
  const int width = std::max((least + length - 1) / length, std::min(together / length, rest / 8));
  const int parts = (rest + width - 1) / width;
  std::vector<Cost> costs(parts);
  parallel_in_order(parts, [&](int lane, int part) {
    const int first = begin + 1 + part * width;
    take(tapes[lane], first, std::min(first + width, blocks), costs[part]);
  });
  for (const auto& cost : costs) add(each, cost, 1);
  return each;
}

#define HARDGRAD_INSTANTIATE(T)                                                                                                \
  template MixturePlan mixture_plan(const Estimator<T>&, const Model<T>&, const Batch&, Key, std::shared_ptr<const PathLaws>); \
  template Cost draw(ReplicateSums&, const Estimator<T>&, const Model<T>&, const Batch&, Key, const MixturePlan&, const Stop&, \
                     Visited*);                                                                                                \
  template Cost draw_at_logits(ReplicateSums&, const Estimator<T>&, const Model<T>&, const Batch&, Key, const MixturePlan&,    \
                               const Stop&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad::measurement
