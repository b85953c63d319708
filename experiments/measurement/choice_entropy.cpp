#include "experiments/measurement/choice_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"
#include "experiments/support/parallel.hpp"

namespace hardgrad::measurement {
namespace {

constexpr int paths = 64;  // per example, if its choices are too many to enumerate

/// Weights of the rows of a run: the probability of the earlier choices, or the share of a sample.
template <class T>
class Weights {
 public:
  Weights(const Episode<T>& episode, double alpha, bool sampled) : episode_(episode), alpha_(alpha), sampled_(sampled) {}

  /// p(option) for one cell of a question, under the target's distribution.
  double probability(const Question<T>& question, std::size_t cell, std::size_t option) const {
    const auto& prior = question.prior_categories();
    const int options = prior.options()[cell];
    if (static_cast<int>(option) >= options) return 0;
    if (alpha_ == 1) return std::exp(static_cast<double>(prior.log_p().value()(cell, option)));
    const auto logits = prior.logits().value();
    return entmax_weight(static_cast<double>(logits(cell, option)), entmax_threshold(logits.row(cell), options, alpha_),
                         alpha_);
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
        weight[r] = before[parent];
        if (drawn) weight[r] /= copies[parent];
        const std::size_t D = question.site.columns;
        if (!drawn && question.site.prior->kind().several) {
          const auto log_p = question.site.prior->log_probability(choice).value();
          weight[r] *= std::exp(std::accumulate(log_p.row(r), log_p.row(r) + D, 0.0));
          continue;
        }
        for (std::size_t d = 0; !drawn && d < D; ++d)
          weight[r] *= probability(question, parent * D + d, choice.option()[r * D + d]);
      }
    }
    return made_[&rows] = std::move(weight);
  }

 private:
  const Episode<T>& episode_;
  double alpha_;  // of an entmax; 1: softmax
  bool sampled_;
  std::map<const Rows*, std::vector<double>> made_;
};

/// Summed entropies, and the expected number of choices in the sum.
struct Sum {
  double entropy = 0, choices = 0;
  void add(const Sum& other) {
    entropy += other.entropy;
    choices += other.choices;
  }
};

/// Sum of the entropies of a question's rows, with their weights; of numbers they are differential and may be negative. Where
/// subsets are too many to sum over, from the subsets drawn, whose rows have the weights `after`.
template <class T>
double entropy_of(const Question<T>& question, const Choice<T>& choice, const std::vector<double>& weight,
                  const std::vector<double>& after) {
  const auto& prior = question.site.prior;
  double total = 0;
  try {
    const auto entropy = prior->entropy().value();
    for (std::size_t r = 0; r < entropy.rows; ++r) total += weight[r] * static_cast<double>(entropy.data[r]);
  } catch (const NotExact&) {
    if (after.empty() || question.distribution != prior || !choice.hard()) throw;
    const auto log_p = prior->log_probability(choice).value();
    for (std::size_t i = 0; i < log_p.size(); ++i) total -= after[i / log_p.cols] * static_cast<double>(log_p.data[i]);
  }
  return total;
}

/// Sums of one run, by site.
template <class T>
std::map<std::string, Sum> sums(const Episode<T>& episode, double alpha, bool sampled) {
  Weights<T> weights(episode, alpha, sampled);
  std::map<std::string, Sum> of_site;
  for (const auto& [question, choice] : episode.steps()) {
    const auto& weight = weights.of(*question.site.rows);
    auto& sum = of_site[std::string(question.site.name)];
    if (!question.has_options() || question.site.prior->kind().several) {
      for (std::size_t r = 0; r < weight.size(); ++r)
        if (question.chooses(r)) sum.choices += weight[r] * question.site.columns;
      sum.entropy += entropy_of(question, choice, weight, sampled ? weights.of(*choice.rows) : std::vector<double>{});
      continue;
    }
    const auto& options = question.prior_categories().options();
    for (std::size_t cell = 0; cell < options.size(); ++cell) {
      if (options[cell] < 2) continue;
      const double of_row = weight[cell / question.site.columns];
      sum.choices += of_row;
      for (int i = 0; i < options[cell]; ++i)
        if (const double p = weights.probability(question, cell, i); p != 0) sum.entropy -= of_row * p * std::log(p);
    }
  }
  return of_site;
}

/// Mean of entropy / choices over the examples that choose at all; NaN if none does.
class Mean {
 public:
  void add(const Sum& sum) {
    if (sum.choices > 0) total_ += sum.entropy / sum.choices, ++count_;
  }
  double value() const { return count_ ? total_ / count_ : std::numeric_limits<double>::quiet_NaN(); }

 private:
  double total_ = 0;
  int count_ = 0;
};

}  // namespace

template <class T>
ChoiceEntropy choice_entropy(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap, Key noise,
                             const Stop& stop) {
  const bool soft = target.name() == "soft", sparse = target.name() == "sparsemax";
  const bool feeding = !model.structure().independent();  // otherwise one run suffices, whatever it chooses
  const auto leaves = feeding ? model.outcomes(batch) : std::vector<double>(batch.examples(), 1.0);
  const bool enumerate =
      !model.structure().numbers() && std::all_of(leaves.begin(), leaves.end(), [&](double n) { return n <= leaf_cap; });
  if (sparse && !enumerate) return {std::numeric_limits<double>::quiet_NaN(), {}};
  std::vector<std::map<std::string, Sum>> of_example(batch.examples());
  parallel_for(batch.examples(), [&](int b) {
    poll(stop);
    const auto example = batch.select({b});
    Tape<T> tape(polling(stop));
    KeyedRandomness random(noise);
    std::unique_ptr<Handler<T>> handler;
    if (soft)
      handler = std::make_unique<ExpectedHandler<T>>();
    else if (!feeding)
      handler = std::make_unique<GreedyHandler<T>>();
    else if (enumerate)
      handler = std::make_unique<EnumerateHandler<T>>(model.structure());
    else
      handler = std::make_unique<SampleHandler<T>>(paths, random, example.id);
    Episode<T> episode(tape, *handler, 1);
    model.run(example, episode);
    of_example[b] = sums(episode, sparse ? target.settings().real("alpha") : 1, !feeding || !enumerate);
  });
  Mean all;
  std::map<std::string, Mean> by_site;
  for (const auto& example : of_example) {
    Sum whole;
    for (const auto& [site, sum] : example) {
      whole.add(sum);
      by_site[site].add(sum);
    }
    all.add(whole);
  }
  ChoiceEntropy result{all.value(), {}};
  for (const auto& [site, mean] : by_site) result.by_site[site] = mean.value();
  return result;
}

template ChoiceEntropy choice_entropy(const Target&, const Model<float>&, const Batch&, double, Key, const Stop&);
template ChoiceEntropy choice_entropy(const Target&, const Model<double>&, const Batch&, double, Key, const Stop&);

}  // namespace hardgrad::measurement
