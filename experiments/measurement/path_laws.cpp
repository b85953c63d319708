#include "experiments/measurement/path_laws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/choice/handlers.hpp"
#include "core/estimator/estimator.hpp"

namespace hardgrad::measurement {
namespace {

/// PathSums over the paths from a row on: of p, of p^2 / q, of p^2 / q times the squared lengths of the scores, and of 1.
struct PathSums {
  double p = 0, squares = 0, scores = 0, tokens = 0, paths = 0;
  void add(const PathSums& other) {
    p += other.p;
    squares += other.squares;
    scores += other.scores;
    tokens += other.tokens;
    paths += other.paths;
  }
};

/// A row of the tree: its key, and the summed squared lengths of the scores before it, plain and with their own ratios.
struct TreeRow {
  Key key;
  double scores = 0, tokens = 0;
};

}  // namespace

template <class T>
std::shared_ptr<const PathLaws> PathLaws::of(const Model<T>& model, const Batch& batch, const Stop& stop) {
  const auto& structure = model.structure_with_policies();
  if (!structure.behaviour || structure.numbers() || structure.independent()) return nullptr;
  for (const auto& site : structure.sites)
    if (site.columns != 1 || !site.kind.options || site.kind.several) return nullptr;
  const auto paths = model.outcomes(batch);
  if (std::any_of(paths.begin(), paths.end(), [](double n) { return !(n <= most_paths); })) return nullptr;
  const auto laws = std::make_shared<PathLaws>();
  KeyedRandomness unused{Key()};
  for (int b = 0; b < batch.examples(); ++b) {
    poll(stop);
    const auto example = batch.select({b});
    Tape<T> tape;
    EnumerateHandler<T> handler(model.structure());
    const auto episode = Problem<T>{.tape = tape,
                                    .model = model,
                                    .batch = example,
                                    .random = unused,
                                    .terms = {.drawn_from = DrawnFrom::behaviour}}
                             .run(handler);
    std::map<const Rows*, std::vector<TreeRow>> rows;
    rows[episode->root().get()].assign(1, {root(example.id.at(0))});
    struct Step {
      std::vector<double> p, q, score;  ///< [R'] of the option of each row after it; |one_hot - p|^2
      double token(std::size_t r) const { return q[r] > 0 ? p[r] / q[r] * (p[r] / q[r]) * score[r] : 0; }
    };
    std::vector<Step> steps;
    for (const auto& [question, choice] : episode->steps()) {
      const auto& before = rows.at(choice.rows->origin.get());
      auto& after_it = rows[choice.rows.get()];
      Step step;
      const auto log_p = question.of(DrawnFrom::prior)->log_probability(choice).value();
      const auto log_q = question.of(DrawnFrom::behaviour)->log_probability(choice).value();
      const auto& prior = question.prior_categories();
      for (std::size_t r = 0; r < choice.rows->size(); ++r) {
        const auto parent = static_cast<std::size_t>(choice.rows->parent[r]);
        const int options = prior.options()[parent];
        const double p = std::exp(static_cast<double>(log_p(r, 0)));
        double score = 1 - 2 * p;
        for (int i = 0; i < options; ++i) score += std::exp(2 * static_cast<double>(prior.log_p().value()(parent, i)));
        step.p.push_back(p);
        step.q.push_back(std::exp(static_cast<double>(log_q(r, 0))));
        step.score.push_back(std::max(0.0, score));
        auto row = before[parent];
        if (options > 1) row.key = after(row.key, static_cast<std::uint32_t>(question.step), choice.option()[r]);
        row.scores += step.score.back();
        row.tokens += step.token(r);
        after_it.push_back(row);
      }
      steps.push_back(std::move(step));
    }
    // From the last choices back.
    std::map<const Rows*, std::vector<PathSums>> sums;
    for (std::size_t s = steps.size(); s-- > 0;) {
      const auto& [question, choice] = episode->steps()[s];
      const auto& step = steps[s];
      const auto& now = rows.at(choice.rows.get());
      const auto& asking = rows.at(choice.rows->origin.get());
      const auto& options = question.prior_categories().options();
      const auto below = sums.find(choice.rows.get());
      std::vector<PathSums> of_row(asking.size());
      for (std::size_t r = 0; r < now.size(); ++r) {
        const PathSums rest = below != sums.end() && below->second[r].paths > 0 ? below->second[r] : PathSums{1, 1, 0, 0, 1};
        const auto parent = static_cast<std::size_t>(choice.rows->parent[r]);
        const double square = step.q[r] > 0 ? step.p[r] / step.q[r] * step.p[r] : 0;
        const PathSums through{step.p[r] * rest.p, square * rest.squares,
                           square * (step.score[r] * rest.squares + rest.scores),
                               step.q[r] * (step.token(r) + rest.tokens), rest.paths};
        of_row[parent].add(through);
        if (options[parent] < 2) continue;
        auto& place = laws->places_[asking[parent].key.value()];
        if (place.alike.empty()) place.trained = place.squares = place.tokens = place.alike = std::vector<double>(options[parent]);
        const auto option = static_cast<std::size_t>(choice.option()[r]);
        place.trained[option] = through.p;
        place.squares[option] = through.scores + asking[parent].scores * through.squares;
        place.tokens[option] = through.tokens + step.q[r] * asking[parent].tokens;
        place.alike[option] = through.paths;
      }
      sums[choice.rows->origin.get()] = std::move(of_row);
    }
  }
  return laws;
}

const PathLaws::Place* PathLaws::at(Key place) const {
  const auto found = places_.find(place.value());
  return found == places_.end() ? nullptr : &found->second;
}

template std::shared_ptr<const PathLaws> PathLaws::of(const Model<float>&, const Batch&, const Stop&);
template std::shared_ptr<const PathLaws> PathLaws::of(const Model<double>&, const Batch&, const Stop&);

}  // namespace hardgrad::measurement
