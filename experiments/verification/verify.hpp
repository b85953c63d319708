// Checks of an estimator: its contract, exact moments and invariances, on small networks.
#pragma once

#include "core/registry/settings.hpp"
#include "experiments/support/stop.hpp"
#include "experiments/verification/verdict.hpp"

namespace hardgrad::verification {

/// Runs every check on the estimator of the spec. All checks are counted and seeded: the verdict is reproducible. Throws
/// UsageError if there is no such estimator or its parameters are wrong.
///
/// contract       an estimate is finite and reproducible in both precisions, does not change the learned state, and does not
///                depend on the number of threads; the estimate of a batch and its reported loss are the means of its
///                examples', unless these are coupled. Or a reason is given.
/// exact mean     every outcome visited: if the estimator claims to be unbiased, the mean equals its target's gradient, to
///                1e-10 of its largest entry (1e-8 with quadrature); otherwise the bias is reported. If outcomes are too many,
///                it is sampled: 20,000 draws, 4,000 for a further target or setting, 2,000 for a bias that is not judged.
///                Also on one choice of 2 to 7 options, and of 4 options with other settings: integers at 2, 3, 5 and 8, real
///                numbers at half and twice their value.
/// truth          the exact gradient is the slope of the target's value (central differences, 1e-5).
/// reported loss  if it is exact and the estimator claims to be unbiased: its mean is the target's value.
/// promises       the declarations of the entry (core/estimator/promises.hpp), by exact moments on the smallest networks.
/// moments        with twice the samples the mean is right, too, and the variance of 4,000 draws agrees with the exact one
///                (within an interval at the level .9999).
/// shift          with a constant added to every loss the mean is still right: 10, and where it is exact 1000 and -1000.
/// settings       contract, mean and loss again with each flag inverted, and with each other choice of a setting.
///
/// A check that throws has failed; NaN throws. With `to_the_first_failure`, no check runs after the first one (of one kind on
/// one network) that fails. `quick`: a tenth of the draws where outcomes are too many for an exact mean; no other numbers,
/// targets and settings, and no whole models. Interrupted if `stop` returns true.
Verdict verify(const Spec& spec, bool to_the_first_failure = false, bool quick = false, const Stop& stop = {});

}  // namespace hardgrad::verification
