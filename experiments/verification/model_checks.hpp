// The single checks of a model: it keeps its declarations, and its rows do not influence each other.
//
// Each returns the first fault and its place; empty if there is none. `detail` receives the figures.
#pragma once

#include <memory>
#include <string>

#include "core/models/model.hpp"
#include "core/models/parts/dropout.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::verification {

/// A model on a batch small enough for all checks.
struct ModelScene {
  std::unique_ptr<tasks::Task> task;
  std::vector<int> index;  ///< the batch's examples in the training split
  Batch batch;
  std::unique_ptr<Model<double>> model, with_posterior;  ///< `with_posterior` is null if the model has no posterior
  std::unique_ptr<Model<float>> narrow;                  ///< the same parameters

  /// Examples of the training split, in training mode: dropout depends on them.
  Batch examples(const std::vector<int>& indices) const {
    auto batch = task->batch(tasks::Split::train, indices);
    add_dropout(batch, Key(31));
    return batch;
  }
};

// model_structure.cpp
/// Sites, columns, options, widths and numbers of questions do not exceed the declaration, and every site is used.
std::string check_sites(const ModelScene& scene, std::string& detail);
/// Changes one answer at a time: only values that the site declares (DependenceScope) may change, and only on rows that descend
/// from it.
std::string check_reach(const ModelScene& scene, std::string& detail);

// model_sameness.cpp
/// Repeated answers give the same numbers, also on a rewound tape; all are finite, and float agrees with double.
std::string check_repeated(const ModelScene& scene, std::string& detail);
/// An example gives the same numbers alone and in the batch.
std::string check_batching(const ModelScene& scene, std::string& detail);
/// An example gives the same numbers with and without the batch's padding.
std::string check_padding(const ModelScene& scene, std::string& detail);
/// A sample gives the same numbers alone and among others.
std::string check_samples(const ModelScene& scene, std::string& detail);
/// Rows with the same history may share a state: losses, distributions and gradient equal those of separate rows.
std::string check_sharing(const ModelScene& scene, std::string& detail);
/// A weight of 1 on an option costs the same as the option.
std::string check_one_hot(const ModelScene& scene, std::string& detail);

// model_truth.cpp
/// The gradient of a number that depends on all costs, log probabilities and states, against central differences: with options,
/// with weights, and under the posterior.
std::string check_gradient(const ModelScene& scene, std::string& detail);
/// Runs every complete set of choices separately: there are no more than declared (Model::outcomes), their probabilities sum to
/// 1, and the mean of their losses and its gradient equal those of the enumeration.
std::string check_outcomes(const ModelScene& scene, std::string& detail);
/// Runs every outcome under a learned posterior: both distributions sum to 1, the posterior gives no probability to outcomes
/// that the prior excludes, and prior and losses equal those of the model without a posterior.
std::string check_posterior(const ModelScene& scene, std::string& detail);

}  // namespace hardgrad::verification
