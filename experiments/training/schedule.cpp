#include "experiments/training/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/models/parts/dropout.hpp"
#include "core/support/error.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::training {

Batches::Batches(const tasks::Task& task, int batch, Key order) : task_(task), order_key_(order) {
  examples_ = task.size(tasks::Split::train);
  if (examples_ == 0) throw InputError("the training split is empty");
  size_ = std::min<std::size_t>(batch, examples_);
  per_epoch_ = examples_ / size_;  // the remainder of an epoch is dropped, so that batches have equal sizes
}

Batch Batches::at(int step) {
  const int epoch = step / static_cast<int>(per_epoch_);
  if (epoch != epoch_) {
    order_ = permutation(examples_, order_key_ / static_cast<std::uint64_t>(epoch));
    epoch_ = epoch;
  }
  const auto from = order_.begin() + static_cast<std::ptrdiff_t>((step % per_epoch_) * size_);
  const std::vector<int> indices(from, from + static_cast<std::ptrdiff_t>(size_));
  const auto key = order_key_ / "examples" / static_cast<std::uint64_t>(epoch);
  const auto* graded = dynamic_cast<const tasks::Graded*>(&task_);
  auto batch = graded ? graded->graded_batch(indices, key, static_cast<std::uint64_t>(step) * size_)
                      : task_.training_batch(indices, key);
  add_dropout(batch, order_key_ / "dropout" / static_cast<std::uint64_t>(epoch));
  return batch;
}

Spec annealed(const Spec& estimator, const std::string& text, double share) {
  if (text.empty()) return estimator;
  const auto& entry = Estimators::instance().at(estimator.name);
  const Settings from(entry.name, entry.parameters, estimator);
  auto spec = estimator;
  for (const auto& [name, value] : Spec::parse("train.anneal[" + text + "]").arguments) {
    std::vector<std::string> real;
    for (const auto& parameter : entry.parameters)
      if (parameter.type == ParameterInfo::Type::real) real.push_back(parameter.name);
    if (std::find(real.begin(), real.end(), name) == real.end())
      throw UsageError(fmt::format("train.anneal: {} has no setting {} that is a real number{}", entry.name, name,
                                   did_you_mean(name, real)));
    const Settings to(entry.name, entry.parameters, estimator.with(name, value));
    const double begin = from.real(name), end = to.real(name);
    spec = spec.with(name, fmt::format("{}", (1 - share) * begin + share * end));
  }
  return spec;
}

}  // namespace hardgrad::training
