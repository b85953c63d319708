// What `hardgrad measure` prints: a line for every estimator, then the reasons for what is marked or was not measured.
#pragma once

#include <vector>

#include "experiments/measurement/measure.hpp"

namespace hardgrad::cli {

/// `exact`: every outcome was visited, so that no column is sampled. `epsilon`: of the precision measured in. All that is
/// formed of replicates which do not support it is marked with a question mark.
void print_measured(const std::vector<measurement::Measurement>& measured, bool exact, double epsilon);

}  // namespace hardgrad::cli
