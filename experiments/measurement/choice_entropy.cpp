#include "experiments/measurement/choice_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "core/autodiff/sparsemax.hpp"
#include "core/choice/choosers.hpp"
#include "experiments/support/parallel.hpp"

namespace hardgrad {
namespace {

constexpr int paths = 64;  // an example, where its choices are too many to enumerate

/// What the rows of a run weigh: the probability of the way to them, or the share of a sample.
template <class T>
class Weights {
 public:
  Weights(const Episode<T>& episode, bool sparse, bool sampled) : episode_(episode), sparse_(sparse), sampled_(sampled) {}

  /// p(option) of a row of a question, as the target means it.
  double probability(const Question<T>& question, std::size_t row, std::size_t option) const {
    const int options = question.site.options[row];
    if (static_cast<int>(option) >= options) return 0;
    if (!sparse_) return std::exp(static_cast<double>(question.log_prior.value()(row, option)));
    const auto logits = question.site.logits.value();
    return std::max(static_cast<double>(logits(row, option)) - sparsemax_threshold(logits.row(row), options), 0.0);
  }

  /// [R]
  const std::vector<double>& of(const Rows& rows) {
    if (auto it = made_.find(&rows); it != made_.end()) return it->second;
    std::vector<double> weight(rows.size(), 1.0);
    if (!rows.is_root()) {
      const auto& before = of(*rows.origin);
      const auto& [question, choice] = episode_.steps()[rows.step];
      std::vector<int> copies(before.size());
      for (int parent : rows.parent) ++copies[parent];
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto parent = static_cast<std::size_t>(rows.parent[r]);
        const bool drawn = sampled_ || !choice.hard();
        weight[r] = before[parent] * (drawn ? 1.0 / copies[parent] : probability(question, parent, choice.option[r]));
      }
    }
    return made_[&rows] = std::move(weight);
  }

 private:
  const Episode<T>& episode_;
  bool sparse_, sampled_;
  std::map<const Rows*, std::vector<double>> made_;
};

/// Of a run: summed entropies over the number of choices, of its one example; -1 without a choice.
template <class T>
double per_choice(const Episode<T>& episode, bool sparse, bool sampled) {
  Weights<T> weights(episode, sparse, sampled);
  double entropy = 0, choices = 0;
  for (const auto& [question, choice] : episode.steps()) {
    const auto& weight = weights.of(*question.site.rows);
    for (std::size_t r = 0; r < weight.size(); ++r) {
      if (question.site.options[r] < 2) continue;
      choices += weight[r];
      for (int i = 0; i < question.site.options[r]; ++i)
        if (const double p = weights.probability(question, r, i); p != 0) entropy -= weight[r] * p * std::log(p);
    }
  }
  return choices == 0 ? -1 : entropy / choices;
}

}  // namespace

template <class T>
double choice_entropy(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap, Key noise,
                      const Stop& stop) {
  const bool soft = target.kind == Target::Kind::soft, sparse = target.kind == Target::Kind::sparsemax;
  const bool feeding = !model.structure().independent();  // else one run says it all, whatever it chooses
  const auto leaves = feeding ? model.outcomes(batch) : std::vector<double>(batch.examples(), 1.0);
  const bool enumerate = std::all_of(leaves.begin(), leaves.end(), [&](double n) { return n <= leaf_cap; });
  if (sparse && !enumerate) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> of_example(batch.examples());
  parallel_for(batch.examples(), [&](int b) {
    poll(stop);
    const auto example = batch.select({b});
    Tape<T> tape;
    KeyedRandomness random(noise);
    std::unique_ptr<Chooser<T>> chooser;
    if (soft)
      chooser = std::make_unique<ExpectedChooser<T>>();
    else if (!feeding)
      chooser = std::make_unique<GreedyChooser<T>>();
    else if (enumerate)
      chooser = std::make_unique<EnumerateChooser<T>>();
    else
      chooser = std::make_unique<SampleChooser<T>>(paths, random, example.id);
    Episode<T> episode(tape, *chooser, 1);
    model.run(example, episode);
    of_example[b] = per_choice(episode, sparse, !feeding || !enumerate);
  });
  double sum = 0;
  int count = 0;
  for (double value : of_example)
    if (value != -1) sum += value, ++count;
  return count ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

template double choice_entropy(const Target&, const Model<float>&, const Batch&, double, Key, const Stop&);
template double choice_entropy(const Target&, const Model<double>&, const Batch&, double, Key, const Stop&);

}  // namespace hardgrad
