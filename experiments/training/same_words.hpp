// Checks that data has the training vocabulary, for tasks that cannot reuse a vocabulary.
#pragma once

#include <string>

#include "experiments/training/evaluation.hpp"

namespace hardgrad::training {

/// InputError `<where>: ...` if an index means one word in the training data and another in the examples to evaluate.
void require_same_words(const tasks::Task& trained, const tasks::Task& task, const EvaluationSettings& settings,
                        const std::string& where);

}  // namespace hardgrad::training
