"""Statistics on plain arrays, each with its source; independent of the file format."""

from .bootstrap import (
    interquartile_mean,
    interquartile_mean_interval,
    probability_of_improvement,
    stratified_bootstrap,
)
from .differences import (
    Difference,
    holm,
    paired_difference,
    pairs_needed,
    propagated_difference,
    welch_difference,
)
from .means import Mean, mean_interval, propagated_mean, scaled
from .noise import fewest_pairs, least_p
from .simultaneous import (
    Pairwise,
    Ranked,
    error_factor,
    letters,
    pairs_tested,
    pairwise_differences,
    pareto_front,
    ranked,
)

__all__ = [
    "Difference",
    "Mean",
    "Pairwise",
    "Ranked",
    "error_factor",
    "fewest_pairs",
    "holm",
    "interquartile_mean",
    "interquartile_mean_interval",
    "least_p",
    "letters",
    "mean_interval",
    "paired_difference",
    "pairs_needed",
    "pairs_tested",
    "pairwise_differences",
    "pareto_front",
    "probability_of_improvement",
    "propagated_difference",
    "propagated_mean",
    "ranked",
    "scaled",
    "stratified_bootstrap",
    "welch_difference",
]
