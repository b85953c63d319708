// Is an estimator what it says it is? The contract, the exact moments and the invariances, on small networks.
#pragma once

#include "core/registry/settings.hpp"
#include "experiments/verification/verdict.hpp"

namespace hardgrad::verification {

/// Runs every check on the estimator of the spec. Counted and seeded: the same verdict every time. Throws UsageError if
/// there is no such estimator or its parameters are wrong.
///
/// contract       an estimate is finite and reproducible in both precisions, leaves the learned state alone, is the same for
///                any number of threads; the estimate of a batch and the loss it reports are the means of its examples', unless
///                these are coupled. Or a reason is given.
/// exact mean     every outcome visited: mean equal to its target's gradient, to 1e-10 of its largest entry (1e-8 with
///                quadrature), if the estimator says it is unbiased; else the bias is reported. Sampled where that is too
///                much: 20,000 draws, 4,000 of a further target or setting, 2,000 of a bias that is not judged.
///                On one choice of 2 to 7 options, too, and of 4 with 2, 3, 5 and 8 where a setting is an integer, half and
///                twice a real one.
/// truth          the gradient that estimates are held to is the slope of the target's value (central differences, 1e-5).
/// reported loss  where that is exact, and the estimator says it is unbiased: its mean is the target's value.
/// promises       what the entry declares (core/estimator/promises.hpp), by exact moments on the smallest networks.
/// moments        with twice the samples the mean is right, too, and 4,000 draws have the exact variance (within an interval
///                at the level .9999).
/// shift          a constant added to every loss leaves the mean what it has to be.
/// settings       contract, mean and loss again with each flag turned over, and with each other choice of a setting.
///
/// A check that throws has failed; NaN is thrown. `to_the_first_failure` leaves out what follows the first check (of one kind
/// on one network) that fails.
Verdict verify(const Spec& spec, bool to_the_first_failure = false);

}  // namespace hardgrad::verification
