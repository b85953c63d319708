// The test networks for estimators: small enough to visit every outcome.
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

/// With options: dependent and independent choices, two and three options, ragged or not, joint and separate costs, two
/// different sites, belief networks of two layers and of categories, nearly deterministic choices. With numbers: dependent, two
/// and four columns, and the toys. With
/// posteriors. Made once per process.
const std::vector<TestModel>& test_models();

/// Networks whose choices are drawn by a behaviour policy, for estimators that correct for it.
const std::vector<TestModel>& off_policy_models();

/// A single question: `columns` choices with `options` options each, and a learned posterior if requested.
TestModel alone(int options, bool posterior, int columns = 1);

/// The recurrent model with dependent choices (Drift if `options` is 0), and `shift` added to every loss.
TestModel shifted(int options, double shift);

}  // namespace hardgrad::verification
