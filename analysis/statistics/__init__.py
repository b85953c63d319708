"""Statistics on plain numbers, each named with its source; nothing here knows a result's file."""

from .bootstrap import (Ranks, interquartile_mean, interquartile_mean_interval, probability_of_improvement, ranks,
                        stratified_bootstrap)
from .differences import (Difference, exactly, holm, paired_difference, pairs_needed, propagated_difference, shared_ranks,
                          welch_difference)
from .means import Mean, mean_interval, propagated_mean, scaled
from .moments import Moments, gradient_moments
from .pareto import pareto_front

__all__ = ["Difference", "Mean", "Moments", "Ranks", "exactly", "gradient_moments", "holm", "interquartile_mean",
           "interquartile_mean_interval", "mean_interval", "paired_difference", "pairs_needed", "pareto_front",
           "probability_of_improvement", "propagated_difference", "propagated_mean", "ranks", "scaled", "shared_ranks", "stratified_bootstrap", "welch_difference"]
