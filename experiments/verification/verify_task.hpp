// Is a task what a model and a trainer take it for? Counted and seeded: the same verdict every time.
#pragma once

#include "core/registry/settings.hpp"
#include "experiments/verification/verdict.hpp"

namespace hardgrad::verification {

/// Runs every check on the first examples of each split. UsageError if there is no such task or its parameters are wrong;
/// InputError if its files cannot be read.
///
/// fields      every field has a line for each example, and holds finite numbers; ids are as many.
/// ids         an example's identity is its own over all splits. How many examples of training stand in another, too, is
/// reported. order       an example is the same wherever in a batch it stands, and twice if it is asked for twice. padding
/// alone it is what it is among longer ones, which it is padded to. seed        the same key makes the same data. What another
/// key changes is reported. training    batches to train on have the ids of those to measure on, and depend on the epoch's key
/// alone. dimensions  the default model can be made of them, and runs on every split with finite losses; metrics have names of
/// their
///             own, and finite values of what it answers.
Verdict verify_task(const Spec& task, bool to_the_first_failure = false);

}  // namespace hardgrad::verification
