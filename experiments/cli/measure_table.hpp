// The table of `hardgrad measure`: one line per estimator, then the reasons for marked or missing values.
#pragma once

#include <vector>

#include "experiments/measurement/measure.hpp"

namespace hardgrad::cli {

/// `epsilon`: machine epsilon of the precision. Values with unsupported intervals are marked with a question mark.
void print_measured(const std::vector<measurement::Measurement>& measured, double epsilon);

}  // namespace hardgrad::cli
