// The grounds an estimator is proven on: networks small enough that every outcome can be visited.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/models/model.hpp"

namespace hardgrad::verification {

struct TestModel {
  std::string name;
  std::unique_ptr<Model<double>> model;
  Batch batch;
};

/// Options: dependent and independent choices, two and three options, ragged and not, joint and separate costs, two sites that
/// differ, belief networks of two layers and of categories. Numbers: dependent, two columns, and the toys. With posteriors.
/// Made once for all verdicts of a process.
const std::vector<TestModel>& test_models();

/// One choice alone, of so many options, with a learned posterior if wanted.
TestModel alone(int options, bool posterior);

/// The recurrent tested with dependent choices (of numbers, if there are no options) and `shift` added to every loss.
TestModel shifted(int options, double shift);

}  // namespace hardgrad::verification
