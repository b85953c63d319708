// Images of digits for tasks: drawn ones, or MNIST's files (and those of data sets that come in its form, such as
// Fashion-MNIST).
#pragma once

#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "core/registry/settings.hpp"
#include "experiments/tasks/loaders/idx.hpp"

namespace hardgrad::tasks {

/// Images with a label each, a byte; no labels if none were asked for.
struct LabelledImages {
  IdxImages images;
  std::string labels;
};

/// What there is to train on, whose last `heldout` images are to validate, and to test on, all of one size.
struct Digits {
  LabelledImages train, test;
  std::size_t heldout;
  std::string provenance;  ///< "generated" or the path
};

constexpr int digit_classes = 10;

/// The settings of a task that `read_digits` reads: path, size, examples, heldout; and limit, most images to train on.
std::vector<ParameterInfo> digit_parameters();
/// By a task's settings. InputError, and UsageError in the name of `task`.
Digits read_digits(const std::string& task, const Settings& settings, Key key, bool labelled);

}  // namespace hardgrad::tasks
