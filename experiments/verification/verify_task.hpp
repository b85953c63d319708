// Checks that a task fits models and trainers. Counted and seeded: the verdict is reproducible.
#pragma once

#include "core/registry/settings.hpp"
#include "experiments/verification/verdict.hpp"

namespace hardgrad::verification {

/// Runs every check on the first examples of each split. UsageError if there is no such task or its parameters are wrong;
/// InputError if its files cannot be read.
///
/// fields      Every field has a line for each example and holds finite numbers; there is one id per example.
/// ids         Ids are unique over all splits. The number of training examples that also occur in another split is reported.
/// order       An example does not depend on its place in a batch, and is the same if it is requested twice.
/// padding     An example alone equals the same example padded among longer ones.
/// seed        The same key makes the same data. The effect of another key is reported.
/// training    Training batches have the ids of the measured ones, and depend only on the epoch's key.
/// dimensions  The default model can be made from them, and runs on every split with finite losses. Metrics have distinct
///             names, and finite values for its answers.
Verdict verify_task(const Spec& task, bool to_the_first_failure = false);

}  // namespace hardgrad::verification
