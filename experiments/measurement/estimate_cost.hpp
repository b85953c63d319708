// The cost of an estimate. A new number of an estimate is a member here, in `add` and in `cost_of`, and is then summed everywhere.
#pragma once

#include "core/autodiff/tape.hpp"
#include "core/estimator/estimator.hpp"

namespace hardgrad::measurement {

struct EstimateCost {
  double rows = 0, attention_values = 0;
  double missed_hints = 0;  ///< Tape::missed_hints

  /// Adds `weight` times another cost, for sums and means.
  void add(const EstimateCost& other, double weight = 1) {
    rows += weight * other.rows;
    attention_values += weight * other.attention_values;
    missed_hints += weight * other.missed_hints;
  }
};

/// Of an estimate that was drawn on the tape since it was cleared.
template <class T>
EstimateCost cost_of(const Estimate<T>& estimate, const Tape<T>& tape) {
  return {estimate.rows(), estimate.attention_values(), static_cast<double>(tape.missed_hints())};
}

}  // namespace hardgrad::measurement
