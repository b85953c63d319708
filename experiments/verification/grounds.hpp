// The grounds an estimator is proven on: networks small enough that every outcome can be visited.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/models/model.hpp"

namespace hardgrad::verification {

struct Ground {
  std::string name;
  std::unique_ptr<Model<double>> model;
  Batch batch;
};

/// Dependent and independent choices, two and three options, ragged and not, joint and separate costs; with posteriors.
std::vector<Ground> grounds();

/// The recurrent ground with dependent choices and `shift` added to every loss.
Ground shifted(int options, double shift);

}  // namespace hardgrad::verification
