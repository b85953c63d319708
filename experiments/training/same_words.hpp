// Whether data read as what a network was trained on: the guard of tasks that take over no vocabulary.
#pragma once

#include <string>

#include "experiments/training/evaluation.hpp"

namespace hardgrad::training {

/// InputError `<where>: ...` if a number stands for one word where the network was trained and for another in the examples to
/// evaluate on.
void require_same_words(const tasks::Task& trained, const tasks::Task& task, const EvaluationSettings& settings,
                        const std::string& where);

}  // namespace hardgrad::training
