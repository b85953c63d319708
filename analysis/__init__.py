"""Reading, tabulating and drawing the results of Hardgrad.

Three lines give a labelled table::

    from analysis import load, table
    result = load("results/quickstart.h5")
    print(table(result))
"""

from .answer import answer
from .curves import loss_curves, metric_curves, variance_over_training
from .errors import InputError, Unverified
from .figures import FIGURES
from .frames import select, tidy
from .inference import aggregates, bias_tests, comparisons, improvement_probabilities, pareto, ranking
from .load import load, load_tuning
from .moments import bias_variance
from .restarts import restart_table, restarts
from .table import format_table, table
from .tried import tried

__all__ = ["FIGURES", "InputError", "Unverified", "aggregates", "answer", "bias_tests", "bias_variance", "comparisons", "format_table",
           "improvement_probabilities", "load", "load_tuning", "loss_curves", "metric_curves", "pareto", "ranking", "restart_table", "restarts", "select", "table", "tidy",
           "tried", "variance_over_training"]
