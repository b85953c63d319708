// Is a task what a model and a trainer take it for? Counted and seeded: the same verdict every time.
#pragma once

#include "core/registry/settings.hpp"
#include "experiments/verification/verdict.hpp"

namespace hardgrad::verification {

/// Runs every check on the first examples of each split. UsageError if there is no such task or its parameters are wrong;
/// InputError if its files cannot be read.
///
/// fields      Every field has a line for each example and holds finite numbers; ids are as many.
/// ids         An example's identity is its own over all splits. How many examples of training stand in another is reported.
/// order       An example is the same wherever it stands in a batch, and twice if it is asked for twice.
/// padding     An example alone is what it is among longer ones, to which it is padded.
/// seed        The same key makes the same data. What another key changes is reported.
/// training    Batches to train on have the ids of those to measure on, and depend on the epoch's key alone.
/// dimensions  The default model can be made of them, and runs on every split with finite losses. Metrics have names of their
///             own, and finite values of what it answers.
Verdict verify_task(const Spec& task, bool to_the_first_failure = false);

}  // namespace hardgrad::verification
