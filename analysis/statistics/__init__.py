"""Statistics on plain arrays, each with its source; independent of the file format."""

from .bootstrap import (Ranks, interquartile_mean, interquartile_mean_interval, probability_of_improvement, ranks,
                        stratified_bootstrap)
from .differences import Difference, holm, paired_difference, pairs_needed, propagated_difference, welch_difference
from .means import Mean, mean_interval, propagated_mean, scaled
from .moments import Moments, gradient_moments
from .pareto import pareto_front
from .simultaneous import Pairwise, error_factor, pairs_tested, pairwise_differences, shared_ranks

__all__ = ["Difference", "Mean", "Moments", "Pairwise", "Ranks", "error_factor", "gradient_moments", "holm", "interquartile_mean",
           "interquartile_mean_interval", "mean_interval", "paired_difference", "pairs_needed", "pairs_tested", "pairwise_differences",
           "pareto_front", "probability_of_improvement", "propagated_difference", "propagated_mean", "ranks", "scaled", "shared_ranks",
           "stratified_bootstrap", "welch_difference"]
