#include "core/estimator/without_replacement/subset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/without_replacement/leave_one_out_ratios.hpp"

namespace hardgrad {
namespace {

/// Draws k outcomes of every example without replacement, by categorical draws over all outcomes.
template <class T>
std::vector<std::vector<std::vector<int>>> draw_paths(const Problem<T>& problem, std::size_t k) {
  for (double outcomes : problem.model.outcomes(problem.batch))
    if (outcomes > 1e4)
      throw NotExact(
          fmt::format("replaying a sample without replacement enumerates all outcomes, and an example has {:.6g}: "
                      "measure it with replicates",
                      outcomes));
  Tape<T> side;
  TopHandler<T> all(static_cast<std::size_t>(-1), problem.batch.id, nullptr);
  Problem<T>{side, problem.model, problem.batch, problem.random, false, problem.terms}.run(all);
  std::vector<std::vector<std::vector<int>>> drawn(problem.batch.examples());
  for (std::size_t b = 0; b < drawn.size(); ++b) {
    const auto& beam = all.scopes()[0].beams[b];
    std::vector<double> log_p;
    for (const auto& path : beam.paths) log_p.push_back(path.log_p);
    for (int i : draw_in_order(std::move(log_p), k, problem.random, {.example = problem.batch.id[b], .step = Draw::whole}))
      drawn[b].push_back(beam.paths[i].answer);
  }
  return drawn;
}

template <class T>
const Structure* scopes_of(const Problem<T>& problem, bool per_step) {
  return per_step ? &problem.model.structure() : nullptr;
}

}  // namespace

std::vector<double> probabilities(const Beam& beam) {
  std::vector<double> p;
  for (const auto& path : beam.paths) p.push_back(std::exp(path.log_p));
  return p;
}

template <class T>
Subset<T>::Subset(const Problem<T>& problem, std::unique_ptr<BeamHandler<T>> handler, bool per_step)
    : whole_(!per_step), handler_(std::move(handler)) {
  episode_ = problem.run(*handler_);
  scopes_ = handler_->scopes();
  for (auto& scope : scopes_) {
    Paths paths{.from = scope.step, .column = scope.column, .example = {}, .row = {}};
    paths.row.resize(scope.beams.front().paths.front().row.size());
    for (std::size_t b = 0; b < scope.beams.size(); ++b)
      for (const auto& path : scope.beams[b].paths) {
        paths.example.push_back(static_cast<int>(b));
        for (std::size_t t = 0; t < path.row.size(); ++t) paths.row[t].push_back(path.row[t]);
      }
    groups_.push_back({&scope.beams, std::move(paths)});
  }
}

template <class T>
Subset<T> Subset<T>::most_probable(const Problem<T>& problem, std::size_t k, bool per_step) {
  return {problem, std::make_unique<TopHandler<T>>(k, problem.batch.id, scopes_of(problem, per_step)), per_step};
}

template <class T>
Subset<T> Subset<T>::most_probable_and_one(const Problem<T>& problem, std::size_t k, bool per_step) {
  return {problem, std::make_unique<TopAndOneHandler<T>>(k, problem.batch.id, scopes_of(problem, per_step), problem.random),
          per_step};
}

template <class T>
Subset<T> Subset<T>::without_replacement(const Problem<T>& problem, std::size_t k, bool per_step, bool with_threshold) {
  auto& random = problem.random;
  const auto& id = problem.batch.id;
  if (!random.enumerates() || per_step) {
    Subset subset(problem, std::make_unique<StochasticHandler<T>>(k, id, scopes_of(problem, per_step), random), per_step);
    if (random.enumerates() && with_threshold) subset.draw_thresholds(id, random);
    if (random.options_first()) subset.end_races(id, random);
    return subset;
  }
  Subset subset(problem, std::make_unique<GivenHandler<T>>(draw_paths(problem, k), id), per_step);
  if (with_threshold) subset.draw_thresholds(id, random);
  return subset;
}

template <class T>
Draw Subset<T>::place(const Scope& scope, std::uint32_t id) const {
  return {.example = id,
          .step = whole_ ? Draw::whole : static_cast<std::uint32_t>(scope.step),
          .column = static_cast<std::uint32_t>(std::max(0, scope.column))};
}

template <class T>
void Subset<T>::end_races(const std::vector<std::uint32_t>& id, Randomness& random) {
  for (auto& scope : scopes_)
    for (std::size_t b = 0; b < id.size(); ++b) {
      auto& beam = scope.beams[b];
      const auto where = place(scope, id[b]);
      Race race{.outcomes = {}, .time = {}, .rest = beam.rest};
      for (const auto& path : beam.paths) {
        race.outcomes.push_back({path.answer, path.log_p});
        race.time.push_back(std::exp(-path.perturbed));
      }
      if (random.without_one(where) && beam.rest > 0) {
        auto at = where;
        at.replica = ~0u;  // beside the draw for the empty path
        at.index = 1;
        const double last = *std::max_element(race.time.begin(), race.time.end());
        beam.threshold = -std::log(last - std::log(random.uniform(at)) / beam.rest);
      }
      random.ended(race, where);
    }
}

template <class T>
void Subset<T>::draw_thresholds(const std::vector<std::uint32_t>& id, Randomness& random) {
  for (auto& scope : scopes_)
    for (std::size_t b = 0; b < id.size(); ++b) {
      auto& beam = scope.beams[b];
      if (beam.rest == 0) continue;  // no outcome is outside the set
      const auto nodes = threshold_nodes(probabilities(beam), beam.rest);
      auto where = place(scope, id[b]);
      where.index = 1;
      beam.threshold = nodes.kappa[random.categorical(nodes.weight, where)];
    }
}

template <class T>
Var<T> Subset<T>::root_cost() const {
  auto total = episode_->tape().constant(1, 1);
  for (const auto& cost : episode_->costs())
    if (cost.rows->is_root()) total = add(total, sum(cost.loss, 1.0 / episode_->examples()));
  return total;
}

template <class T>
Estimate<T> Subset<T>::estimate(const Rule& rule) && {
  const double share = 1.0 / episode_->examples();
  auto surrogate = whole_ ? episode_->tape().constant(1, 1) : root_cost();
  auto loss = static_cast<double>(surrogate.item());
  for (const auto& group : groups_) {
    const auto f = path_cost_values(*episode_, group.paths, whole_);
    std::vector<double> score, path;
    for (const auto& beam : *group.beams) {
      const auto weights = rule(beam, std::span(f).subspan(score.size(), beam.paths.size()));
      for (std::size_t s = 0; s < weights.score.size(); ++s) {
        loss += share * weights.path[s] * f[score.size()];
        score.push_back(share * weights.score[s]);
        path.push_back(share * weights.path[s]);
      }
    }
    surrogate = add(surrogate, weighted_sum(path_log_probability(*episode_, group.paths), std::span<const double>(score)));
    surrogate = add(surrogate, weighted_sum(path_cost(*episode_, group.paths, whole_), std::span<const double>(path)));
  }
  return {.surrogate = surrogate, .episode = std::move(episode_), .loss = loss};
}

template class Subset<float>;
template class Subset<double>;

void per_step_field(Fields& field, bool& per_step) {
  field(per_step, "per_step", "draw a separate set for each choice; the choices must be independent");
}
std::string refuse_subset(int samples, bool per_step, const Structure& structure) {
  if (per_step && !structure.steps_apart())
    return "per_step=true treats choices separately, but the choices of this model depend on each other: set per_step=false";
  const double outcomes = per_step ? structure.most_sets() : std::pow(structure.largest_support(), structure.choices());
  if (samples > outcomes)
    return fmt::format("samples={} is more than the {} {} there are: take at most {}", samples, outcomes,
                       per_step ? "answers" : "outcomes", outcomes);
  return "";
}

}  // namespace hardgrad
