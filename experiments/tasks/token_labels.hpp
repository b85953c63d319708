// Base of tasks whose examples are sequences of tokens; some tokens have a label, which is predicted there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "experiments/tasks/on_demand.hpp"

namespace hardgrad::tasks {

/// Fields: integers "token" [B, T], -1 pads; "label" [B, T], -1 where nothing is predicted. Examples are made on demand.
class TokenLabels : public OnDemand {
 public:
  struct Sequence {
    std::vector<int> token, label;  // [T]
    void add(int next, int wanted = -1) {
      token.push_back(next);
      label.push_back(wanted);
    }
  };

  Batch batch(Split split, const std::vector<int>& indices) const override {
    Batch batch;
    std::vector<Sequence> all;
    std::size_t T = 0;
    for (const int i : indices) {
      batch.id.push_back(id_of(split, i));
      all.push_back(sequence(batch.id.back()));
      T = std::max(T, all.back().token.size());
    }
    put(all, T, batch);
    return batch;
  }
  /// Adds the fields of these sequences, padded to T tokens.
  static void put(const std::vector<Sequence>& all, std::size_t T, Batch& batch) {
    Array<int> token = full<int>({all.size(), T}, -1), label = token;
    for (std::size_t b = 0; b < all.size(); ++b) {
      std::copy(all[b].token.begin(), all[b].token.end(), row_of(token, b).begin());
      std::copy(all[b].label.begin(), all[b].label.end(), row_of(label, b).begin());
    }
    batch.integers["token"] = std::move(token);
    batch.integers["label"] = std::move(label);
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "accuracy", .unit = "1", .share = true}, {.name = "solved", .unit = "1", .share = true}};
  }
  /// accuracy: share of the labels that are predicted; solved: of the sequences whose labels all are. Predictions come in the
  /// order of the labels.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    for (int b = 0; b < batch.examples(); ++b) {
      const auto said = predicted(seen, b);
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
  /// The labels that were predicted for an example, in order.
  static std::vector<int> predicted(const Observation& seen, int b) {
    std::vector<int> labels;
    for (const int label : row_of(seen.predictions, b))
      if (label >= 0) labels.push_back(label);
    return labels;
  }

 protected:
  using OnDemand::OnDemand;
  virtual Sequence sequence(std::uint32_t id) const = 0;
};

}  // namespace hardgrad::tasks
