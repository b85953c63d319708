// Sequences of tokens with labels at some of them, to predict there: their fields and metrics, and a base of their tasks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "experiments/tasks/on_demand.hpp"

namespace hardgrad::tasks {

struct TokenSequence {
  std::vector<int> token, label;  ///< [T]; label -1: nothing is predicted
  void add(int next, int wanted = -1) {
    token.push_back(next);
    label.push_back(wanted);
  }
};

/// Adds the integer fields "token" and "label" [B, T] of these sequences, padded with -1 to the longest, or to `least`.
inline void put_tokens(const std::vector<TokenSequence>& all, Batch& batch, std::size_t least = 0) {
  std::size_t T = least;
  for (const auto& sequence : all) T = std::max(T, sequence.token.size());
  Array<int> token = full<int>({all.size(), T}, -1), label = token;
  for (std::size_t b = 0; b < all.size(); ++b) {
    std::copy(all[b].token.begin(), all[b].token.end(), row_of(token, b).begin());
    std::copy(all[b].label.begin(), all[b].label.end(), row_of(label, b).begin());
  }
  batch.integers["token"] = std::move(token);
  batch.integers["label"] = std::move(label);
}

/// The labels that were predicted for an example, in order.
inline std::vector<int> predicted_labels(const Observation& seen, int b) {
  std::vector<int> labels;
  for (const int label : row_of(seen.predictions, b))
    if (label >= 0) labels.push_back(label);
  return labels;
}

/// accuracy: share of the labels that are predicted; solved: of the sequences whose labels all are.
inline std::vector<Metric> label_metrics() {
  return {{.name = "accuracy", .unit = "1", .share = true}, {.name = "solved", .unit = "1", .share = true}};
}
inline void score_labels(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) {
  for (int b = 0; b < batch.examples(); ++b) {
    const auto said = predicted_labels(seen, b);
    std::size_t right = 0, count = 0;
    for (const int label : row_of(batch.ints("label"), b)) {
      if (label < 0) continue;
      right += count < said.size() && said[count] == label;
      ++count;
    }
    metrics[0].add(static_cast<double>(right), static_cast<double>(count));
    metrics[1].add(right == count);
  }
}

/// Base of tasks whose sequences are made on demand.
class TokenLabels : public OnDemand {
 public:
  Batch batch(Split split, const std::vector<int>& indices) const override {
    Batch batch;
    std::vector<TokenSequence> all;
    for (const int i : indices) {
      batch.id.push_back(id_of(split, i));
      all.push_back(sequence(batch.id.back()));
    }
    put_tokens(all, batch);
    return batch;
  }
  std::vector<Metric> metrics() const override { return label_metrics(); }
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    score_labels(batch, seen, metrics);
  }

 protected:
  using OnDemand::OnDemand;
  virtual TokenSequence sequence(std::uint32_t id) const = 0;
};

}  // namespace hardgrad::tasks
