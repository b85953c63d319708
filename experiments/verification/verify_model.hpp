// Checks that a model keeps its declarations, and that its rows do not influence each other. Counted and seeded: the verdict is
// reproducible.
#pragma once

#include <optional>

#include "core/registry/settings.hpp"
#include "experiments/verification/verdict.hpp"

namespace hardgrad::verification {

/// Runs every check (model_checks.hpp) of the model, in double, at parameters moved away from their start, on a few examples of
/// the task. Without a task: on its small scenes (scenes.hpp), whose settings the spec overrides; if it has none, on a task
/// whose default model it is. UsageError if there is no such model, no such task, or they do not fit.
Verdict verify_model(const Spec& model, const std::optional<Spec>& task = {}, bool to_the_first_failure = false);

}  // namespace hardgrad::verification
