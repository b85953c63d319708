"""Reading, tabulating and drawing the results of Hardgrad.

Three lines give a labelled table::

    from analysis import load, table
    result = load("results/quickstart.h5")
    print(table(result))
"""

from .errors import InputError
from .figures import FIGURES, bias_variance, loss_curves, metric_curves, variance_over_training
from .load import load
from .table import format_table, table

__all__ = ["FIGURES", "InputError", "bias_variance", "format_table", "load", "loss_curves", "metric_curves",
           "table", "variance_over_training"]
