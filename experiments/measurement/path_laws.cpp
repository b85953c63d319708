#include "experiments/measurement/path_laws.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/choice/handlers.hpp"
#include "core/estimator/estimator.hpp"

namespace hardgrad::measurement {
namespace {

/// A row of the tree: the choices before it.
struct TreeRow {
  Key key;
  double log_p = 0, log_q = 0, scores = 0, choices = 0;  ///< summed log probabilities, |s_t|^2 and (p_t / q_t)^2 |s_t|^2
  int count = 0;

  std::array<double, PathLaws::laws> as_leaf() const {
    const double q = std::exp(log_q), log_ratio = log_p - log_q;
    return {std::exp(log_p), std::exp(log_p + log_ratio) * scores, q * choices,
            std::exp(log_q + 2 * log_ratio / std::max(1, count)) * scores, 1};
  }
};

/// The rows after a choice.
template <class T>
std::vector<TreeRow> rows_after(const Question<T>& question, const Choice<T>& choice, const std::vector<TreeRow>& before) {
  const auto log_p = question.of(DrawnFrom::prior)->log_probability(choice).value();
  const auto log_q = question.of(DrawnFrom::behaviour)->log_probability(choice).value();
  const auto& prior = question.prior_categories();
  std::vector<TreeRow> rows;
  for (std::size_t r = 0; r < choice.rows->size(); ++r) {
    const auto parent = static_cast<std::size_t>(choice.rows->parent[r]);
    auto row = before[parent];
    const int options = prior.options()[parent];
    if (options > 1) {
      const double log = static_cast<double>(log_p(r, 0)), ratio = std::exp(log - static_cast<double>(log_q(r, 0)));
      double score = 1 - 2 * std::exp(log);
      for (int i = 0; i < options; ++i) score += std::exp(2 * static_cast<double>(prior.log_p().value()(parent, i)));
      row.key = PathLaws::after(row.key, static_cast<std::uint32_t>(question.step), choice.option()[r]);
      row.log_p += log;
      row.log_q += static_cast<double>(log_q(r, 0));
      row.scores += std::max(0.0, score);
      row.choices += ratio * ratio * std::max(0.0, score);
      ++row.count;
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

template <class T>
std::shared_ptr<const PathLaws> PathLaws::of(const Model<T>& model, const Batch& batch, const Stop& stop) {
  const auto& structure = model.structure_with_policies();
  if (!structure.behaviour || structure.numbers() || structure.independent()) return nullptr;
  for (const auto& site : structure.sites)
    if (site.columns != 1 || !site.kind.options || site.kind.several) return nullptr;
  const auto paths = model.outcomes(batch);
  if (std::any_of(paths.begin(), paths.end(), [](double n) { return !(n <= most_paths); })) return nullptr;
  const auto found = std::make_shared<PathLaws>();
  KeyedRandomness unused{Key()};
  for (int b = 0; b < batch.examples(); ++b) {
    poll(stop);
    const auto example = batch.select({b});
    Tape<T> tape;
    EnumerateHandler<T> handler(model.structure());
    const auto episode =
        Problem<T>{
            .tape = tape, .model = model, .batch = example, .random = unused, .terms = {.drawn_from = DrawnFrom::behaviour}}
            .run(handler);
    std::map<const Rows*, std::vector<TreeRow>> rows;
    rows[episode->root().get()].assign(1, {root(example.id.at(0))});
    for (const auto& [question, choice] : episode->steps())
      rows[choice.rows.get()] = rows_after(question, choice, rows.at(choice.rows->origin.get()));
    // From the last choices back: a row that none continues is a leaf.
    std::map<const Rows*, std::vector<std::array<double, laws>>> sums;
    for (auto step = episode->steps().rbegin(); step != episode->steps().rend(); ++step) {
      const auto& [question, choice] = *step;
      const auto& now = rows.at(choice.rows.get());
      const auto& asking = rows.at(choice.rows->origin.get());
      const auto below = sums.find(choice.rows.get());
      std::vector<std::array<double, laws>> of_row(asking.size());
      for (std::size_t r = 0; r < now.size(); ++r) {
        const bool goes_on = below != sums.end() && below->second[r][alike] > 0;
        const auto through = goes_on ? below->second[r] : now[r].as_leaf();
        const auto parent = static_cast<std::size_t>(choice.rows->parent[r]);
        const int options = question.prior_categories().options()[parent];
        auto* place = options > 1 ? &found->places_[asking[parent].key.value()] : nullptr;
        for (std::size_t law = 0; law < laws; ++law) {
          of_row[parent][law] += through[law];
          if (!place) continue;
          (*place)[law].resize(static_cast<std::size_t>(options));
          (*place)[law][static_cast<std::size_t>(choice.option()[r])] = through[law];
        }
      }
      sums[choice.rows->origin.get()] = std::move(of_row);
    }
  }
  return found;
}

const PathLaws::Place* PathLaws::at(Key place) const {
  const auto found = places_.find(place.value());
  return found == places_.end() ? nullptr : &found->second;
}

template std::shared_ptr<const PathLaws> PathLaws::of(const Model<float>&, const Batch&, const Stop&);
template std::shared_ptr<const PathLaws> PathLaws::of(const Model<double>&, const Batch&, const Stop&);

}  // namespace hardgrad::measurement
