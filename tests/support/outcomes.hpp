// Lists every outcome of one example, for enumerations that are independent of the estimators' code.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/estimator.hpp"
#include "core/models/model.hpp"

namespace hardgrad::testing {

/// One complete set of choices.
struct Outcome {
  std::vector<int> option;
  double p = 1, f = 0;
  std::vector<double> score;  ///< d log p / d parameters
};

/// All outcomes of the batch's only example, in lexicographic order. Each outcome is a separate run.
inline std::vector<Outcome> all_outcomes(const Model<double>& model, const Batch& batch) {
  const auto& structure = model.structure();
  const int choices = structure.choices(), options = structure.most_options(), columns = structure.most_columns();
  std::vector<Outcome> all;
  for (int code = 0; code < std::pow(options, choices); ++code) {
    Outcome outcome;
    for (int i = 0, rest = code; i < choices; ++i, rest /= options)
      outcome.option.insert(outcome.option.begin(), rest % options);
    std::vector<std::vector<int>> forced(choices / columns);
    for (int i = 0; i < choices; ++i) forced[i / columns].push_back(outcome.option[i]);
    Tape<double> tape;
    ForcedHandler<double> handler(forced);
    Episode<double> episode(tape, handler, 1);
    model.run(batch, episode);
    auto log_p = tape.constant(1, 1);
    bool exists = true;
    for (std::size_t t = 0; t < forced.size(); ++t) {
      for (int d = 0; d < columns; ++d) exists &= forced[t][d] < episode.steps()[t].question.categories().options()[d];
      if (exists) log_p = add(log_p, episode.log_probability(static_cast<int>(t)));
    }
    if (!exists) continue;
    for (const auto& cost : episode.costs()) outcome.f += cost.loss.item();
    outcome.p = std::exp(log_p.item());
    tape.backward(log_p);
    outcome.score.resize(model.parameters().size());
    tape.add_gradient(model.parameters(), std::span<double>(outcome.score));
    all.push_back(std::move(outcome));
  }
  return all;
}

/// The probability that a sample without replacement, from outcomes of total mass `total`, is the given set: the sum over all
/// orders.
inline double set_probability(std::vector<double> p, double total) {
  std::vector<int> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  double sum = 0;
  do {
    double left = total, product = 1;
    for (int i : order) {
      product *= p[i] / left;
      left -= p[i];
    }
    sum += product;
  } while (std::next_permutation(order.begin(), order.end()));
  return sum;
}

/// f(indices) for every set of k out of n.
template <class F>
void for_sets(int n, int k, F&& f) {
  std::vector<int> set;
  for (int mask = 0; mask < 1 << n; ++mask) {
    set.clear();
    for (int i = 0; i < n; ++i)
      if (mask >> i & 1) set.push_back(i);
    if (static_cast<int>(set.size()) == k) f(set);
  }
}

/// Examples that differ only in their noise.
inline Batch many(int examples) {
  Batch batch;
  batch.id.resize(examples);
  std::iota(batch.id.begin(), batch.id.end(), 0u);
  return batch;
}

}  // namespace hardgrad::testing
