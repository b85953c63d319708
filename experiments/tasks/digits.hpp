// Images of digits for tasks: drawn digits, or files in MNIST's format (e.g. also Fashion-MNIST).
#pragma once

#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "core/registry/settings.hpp"
#include "experiments/tasks/loaders/idx.hpp"

namespace hardgrad::tasks {

/// Images and their labels, one byte each; no labels if they were not requested.
struct LabelledImages {
  IdxImages images;
  std::string labels;
};

/// Training and test images of one size. The last `heldout` of `train` are for validation.
struct Digits {
  LabelledImages train, test;
  std::size_t heldout;
  std::string provenance;  ///< "generated" or the path
};

constexpr int digit_classes = 10;

/// The settings of a task that `read_digits` reads: path, size, examples, heldout; and limit, most images to train on.
std::vector<ParameterInfo> digit_parameters();
/// Reads or draws digits by a task's settings. InputError; UsageError in the name of `task`.
Digits read_digits(const std::string& task, const Settings& settings, Key key, bool labelled);

}  // namespace hardgrad::tasks
