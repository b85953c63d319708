// The single checks of a model: is it what it declares, and is a row its own?
//
// Each says in words what is wrong, with the first place where it is; empty if nothing is. What they found goes to `detail`.
#pragma once

#include <memory>
#include <string>

#include "core/models/model.hpp"
#include "core/models/parts/dropout.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::verification {

/// A model on a batch small enough to be looked at from all sides.
struct ModelScene {
  std::unique_ptr<tasks::Task> task;
  std::vector<int> index;  ///< of the batch's examples in the training split
  Batch batch;
  std::unique_ptr<Model<double>> model, with_posterior;  ///< the latter null if it has none
  std::unique_ptr<Model<float>> narrow;                  ///< the same parameters

  /// Examples of the training split, as in training: what falls out of a network with dropout is theirs.
  Batch examples(const std::vector<int>& indices) const {
    auto batch = task->batch(tasks::Split::train, indices);
    add_dropout(batch, Key(31));
    return batch;
  }
};

// model_structure.cpp
/// Sites, columns, options, widths and numbers of questions are no more than declared, and every site is asked.
std::string check_sites(const ModelScene& scene, std::string& detail);
/// One answer after the other is changed: only what the site declares (Reach) may move, and only on rows that come from it.
std::string check_reach(const ModelScene& scene, std::string& detail);

// model_sameness.cpp
/// The same answers give the same numbers again, also on a tape that was rewound; finite, and in float what they are in double.
std::string check_repeated(const ModelScene& scene, std::string& detail);
/// An example alone is what it is in the batch.
std::string check_batching(const ModelScene& scene, std::string& detail);
/// An example without the batch's padding is what it is in the batch.
std::string check_padding(const ModelScene& scene, std::string& detail);
/// A sample among others is what it is alone.
std::string check_samples(const ModelScene& scene, std::string& detail);
/// Rows with one history may share a state: losses, distributions and gradient are those of rows kept apart.
std::string check_sharing(const ModelScene& scene, std::string& detail);
/// All weight on an option costs what the option does.
std::string check_one_hot(const ModelScene& scene, std::string& detail);

// model_truth.cpp
/// The gradient of a number that depends on all costs, log probabilities and states, against central differences: of options,
/// of weights, and under the posterior.
std::string check_gradient(const ModelScene& scene, std::string& detail);
/// Every complete set of choices run by itself: no more than declared (Model::outcomes), their probabilities sum to 1, and the
/// mean of their losses and its gradient are what the enumeration says.
std::string check_outcomes(const ModelScene& scene, std::string& detail);
/// Of every outcome under a learned posterior: both laws sum to 1, the posterior gives nothing to what the prior cannot choose,
/// and prior and losses are those of the model without it.
std::string check_posterior(const ModelScene& scene, std::string& detail);

}  // namespace hardgrad::verification
