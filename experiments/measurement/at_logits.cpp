#include "experiments/measurement/at_logits.hpp"

#include "core/estimator/enumeration/objectives.hpp"
#include "core/models/parts/replicates.hpp"
#include "experiments/measurement/defensive_mixture.hpp"

namespace hardgrad::measurement {
namespace {

/// Adds the logit gradients of `episode` to the replicates: copy m of example b (row b M + m of the batch) to gradient m.
template <class T>
void add_episode(Tape<T>& tape, const Episode<T>& episode, int copies, LogitGradients& result) {
  auto& into = result.of_replicate;
  std::size_t at = 0, step_of_run = 0;
  for (const auto& step : episode.steps()) {
    const auto& site = step.question.site;
    std::size_t of_site = 0;
    auto parameters = site.prior->parameters();
    if (episode.terms().drawn_from == DrawnFrom::posterior)
      for (const auto& of_posterior : step.question.distribution->parameters()) parameters.push_back(of_posterior);
    for (const auto& [name, parameter] : parameters) {
      const auto g = tape.gradient(parameter);
      const std::size_t of_row = g.size() / site.rows->size(), size = episode.examples() / copies * of_row;
      for (auto& gradient : into)
        if (gradient.size() < at + size) gradient.resize(at + size);
      for (std::size_t r = 0; r < site.rows->size(); ++r) {
        const int example = site.rows->example[r];
        double* to = into[example % copies].data() + at + example / copies * of_row;
        for (std::size_t j = 0; j < of_row; ++j) to[j] += copies * static_cast<double>(g.data[r * of_row + j]);
      }
      at += size;
      of_site += size;
    }
    if (result.sites.size() < ++step_of_run) result.sites.emplace_back(site.name, of_site);
  }
}

template <class T>
LogitGradients collect(Tape<T>& tape, const Estimate<T>& estimate, int copies) {
  tape.backward(estimate.surrogate);
  LogitGradients result{std::vector<std::vector<double>>(copies), {}, {}, cost_of(estimate, tape)};
  add_episode(tape, *estimate.episode, copies, result);
  for (const auto& other : estimate.others) add_episode(tape, *other, copies, result);
  return result;
}

}  // namespace

template <class T>
LogitGradients gradients_at_logits(Tape<T>& tape, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                                   Key noise, int first, int count, const MixturePlan& plan) {
  tape.rewind();
  tape.differentiate_logits_only();
  const auto rows = repeated(batch, count);
  std::vector<DefensiveMixture> of_copy;
  for (int m = first; m < first + count; ++m) of_copy.emplace_back(noise, static_cast<std::uint64_t>(m), plan);
  std::vector<Randomness*> sources;
  for (auto& source : of_copy) sources.push_back(&source);
  ReplicatedRandomness random(batch, sources);
  auto result = collect(
      tape, estimator.draw({.tape = tape, .model = model, .batch = rows, .random = random, .replicates = count}), count);
  for (const auto& source : of_copy) result.weights.push_back(source.weight());
  return result;
}

template <class T>
std::vector<double> exact_gradient_at_logits(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap) {
  Tape<T> tape;
  tape.differentiate_logits_only();
  KeyedRandomness unused{Key{}};
  const auto estimate = exact_objective<T>(target, {tape, model, batch, unused}, leaf_cap);
  return collect(tape, estimate, 1).of_replicate[0];
}

#define HARDGRAD_INSTANTIATE(T)                                                                                            \
  template LogitGradients gradients_at_logits(Tape<T>&, const Estimator<T>&, const Model<T>&, const Batch&, Key, int, int, \
                                              const MixturePlan&);                                                         \
  template std::vector<double> exact_gradient_at_logits(const Target&, const Model<T>&, const Batch&, double);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad::measurement
